"""The model that a program builds, of tensors and operations, and what it becomes."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crosschip.apis.nnrt.conformance import as_reference
from crosschip.apis.nnrt.descriptions import element_type
from crosschip.apis.nnrt.enumerations import (
    OH_NN_DataType,
    OH_NN_OperationType,
    OH_NN_ReturnCode,
    OH_NN_TensorType,
)
from crosschip.apis.nnrt.results import Failure, Handle, invalid
from crosschip.apis.nnrt.rows import rows
from crosschip.ir import (
    Array,
    Builder,
    Model,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    constant,
    symbol,
)
from crosschip.ir.model import Origin
from crosschip.ir.types import FLOATS
from crosschip.mapping.translation import import_operation


@dataclass(slots=True)
class Tensor:
    """A tensor of a model.

    Attributes:
        index: its place among the model's tensors.
        data_type: the type of its elements.
        shape: a size for each axis; -1 where it is known only when the model runs.
        type: what it is for.
        quantization: the quantization parameters that the program has set; `None` if none.
        value: the elements of a constant.
    """

    index: int
    data_type: OH_NN_DataType
    shape: tuple[int, ...]
    type: OH_NN_TensorType = OH_NN_TensorType.OH_NN_TENSOR
    quantization: Quantization | None = None
    value: Array | None = None

    @property
    def name(self) -> str:
        """The tensor's name in messages."""
        return f"tensor_{self.index}"

    @property
    def declared(self) -> TensorType:
        """Its type, with a name for each open size."""
        shape = tuple(
            symbol(f"{self.name}_{axis}") if size < 0 else size
            for axis, size in enumerate(self.shape)
        )
        return TensorType(element_type(self.data_type), shape, self.effective_quantization)

    @property
    def effective_quantization(self) -> Quantization | None:
        """How its integers stand for reals; `None` if they do not.

        The source takes quantization parameters of any tensor; of reals and of an operator's
        parameters they mean nothing there.
        """
        real = element_type(self.data_type) in FLOATS
        if as_reference() and (real or self.type is not OH_NN_TensorType.OH_NN_TENSOR):
            return None
        return self.quantization


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a model; tensors are told by their places.

    Attributes:
        code: its operator.
        parameters: the tensors that are its parameters.
        inputs: the tensors that it reads.
        outputs: those that it makes.
    """

    code: OH_NN_OperationType
    parameters: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class OH_NNModel(Handle):
    """A model: its tensors and operations in the order in which they were added.

    Attributes:
        tensors: the tensors.
        operations: the operations.
        inputs: the places of the tensors that are its inputs; `None` before they are specified.
        outputs: those of its outputs.
        closed: whether building it has ended.
        finished: what it has become; `None` before it is finished, or if that failed.
        refusal: why compiling it fails, where `Finish` does not say so; else empty.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tensors: list[Tensor] = []
        self.operations: list[Operation] = []
        self.inputs: tuple[int, ...] | None = None
        self.outputs: tuple[int, ...] = ()
        self.closed = False
        self.finished: Model | None = None
        self.refusal = ""

    def whole(self) -> Model:
        """What it has become.

        Raises:
            Failure: it has not been finished, or breaks a rule of an operator.
        """
        if self.refusal:
            raise Failure(OH_NN_ReturnCode.OH_NN_FAILED, self.refusal)
        if self.finished is None:
            raise invalid("the model has not been finished")
        return self.finished


def build(model: OH_NNModel) -> Model:
    """Put a model's operations into standard ones.

    Raises:
        Failure, Error: an operation breaks a rule of its operator, or what it makes is not what it
            is declared to make.
    """
    builder = Builder("nnrt")
    values: dict[int, Operand] = {}
    for place, index in enumerate(model.inputs or ()):
        values[index] = builder.input(f"input{place}", model.tensors[index].declared)
    for operation in _ordered(model):
        _add(model, operation, builder, values)
    for place, index in enumerate(model.outputs):
        if index not in values:
            raise ModelError(f"output {place} of the model is made by no operation")
        builder.output(f"output{place}", values[index])
    return builder.build()


def _ordered(model: OH_NNModel) -> Iterator[Operation]:
    """Yield the operations, each after those that make what it reads."""
    makers: dict[int, int] = {}
    for place, operation in enumerate(model.operations):
        for index in operation.outputs:
            if makers.setdefault(index, place) != place or model.tensors[index].value is not None:
                raise ModelError(f"tensor {index} is made twice, or is a constant")
    needed = {
        place: [makers[index] for index in operation.inputs if index in makers]
        for place, operation in enumerate(model.operations)
    }
    try:
        for place in graphlib.TopologicalSorter(needed).static_order():
            yield model.operations[place]
    except graphlib.CycleError:
        raise ModelError("an operation reads what follows from its own output") from None


def _add(
    model: OH_NNModel, operation: Operation, builder: Builder, values: dict[int, Operand]
) -> None:
    name = operation.code.name.removeprefix("OH_NN_OPS_").lower()
    builder.origins = (
        Origin(
            operation.code.name,
            tuple(model.tensors[index].name for index in operation.inputs),
            tuple(model.tensors[index].name for index in operation.outputs),
        ),
    )
    inputs = [_value(model.tensors[index], values) for index in operation.inputs]
    parameters: Mapping[OH_NN_TensorType, Operand] = {
        model.tensors[index].type: _value(model.tensors[index], values)
        for index in operation.parameters
    }
    declared = [model.tensors[index].declared for index in operation.outputs]
    for row, count, types, _ in rows()[operation.code]:
        missing = [None] * max(count - len(inputs), 0)
        operands = [*inputs, *missing, *(parameters.get(type_) for type_ in types)]
        if row.fits(operands, declared):
            results = import_operation(row, builder, operands, declared, builder.unique_name(name))
            break
    else:
        raise ModelError(f"{operation.code.name}: there is no such case of it")
    _check_results(operation, results, declared)
    values.update(zip(operation.outputs, results, strict=True))


def _value(tensor: Tensor, values: dict[int, Operand]) -> Operand:
    if tensor.value is not None and tensor.index not in values:
        values[tensor.index] = constant(tensor.value, tensor.name, tensor.effective_quantization)
    if tensor.index not in values:
        raise ModelError(f"tensor {tensor.index} is no constant, and nothing makes it")
    return values[tensor.index]


def _check_results(
    operation: Operation, results: Sequence[Operand], declared: Sequence[TensorType]
) -> None:
    if len(results) != len(declared):
        raise ModelError(
            f"{operation.code.name}: makes {len(results)} outputs, not {len(declared)}"
        )
    for operand, wanted in zip(results, declared, strict=True):
        inferred = operand.type
        shapes = zip(inferred.shape or (), wanted.shape or (), strict=False)
        fits = inferred.shape is None or (
            len(inferred.shape) == len(wanted.shape or ())
            and all(a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in shapes)
        )
        if inferred.element_type is not wanted.element_type or not fits:
            raise Failure(
                OH_NN_ReturnCode.OH_NN_FAILED,
                f"{operation.code.name}: makes {inferred}, not {wanted}",
            )
