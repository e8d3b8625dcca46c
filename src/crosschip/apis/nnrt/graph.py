"""The model that a program builds: tensors and operations, and its translation."""

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
        index: the index among the model's tensors.
        data_type: the element type.
        shape: the shape, with -1 for dynamic dimensions.
        type: data, or an operator's parameter.
        quantization: the quantization parameters that the program set, or `None`.
        value: a constant's elements.
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
        """Crosschip's type, with a symbol per dynamic dimension."""
        shape = tuple(
            symbol(f"{self.name}_{axis}") if size < 0 else size
            for axis, size in enumerate(self.shape)
        )
        return TensorType(element_type(self.data_type), shape, self.effective_quantization)

    @property
    def effective_quantization(self) -> Quantization | None:
        """The quantization parameters that are in effect, or `None`.

        The reference implementation accepts parameters for any tensor, and ignores those of
        floating-point tensors and of operator parameters.
        """
        is_float = element_type(self.data_type) in FLOATS
        if as_reference() and (is_float or self.type is not OH_NN_TensorType.OH_NN_TENSOR):
            return None
        return self.quantization


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a model; tensors are given by their indices.

    Attributes:
        code: the operator.
        parameters: the parameter tensors.
        inputs: the input tensors.
        outputs: the output tensors.
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
        inputs: the indices of the model's inputs; `None` before they are specified.
        outputs: the indices of the model's outputs.
        closed: whether `Finish` has been called.
        finished: the translated model; `None` before `Finish`, or if translation failed.
        refusal: the error that `Finish` did not report and compilation will; empty if none.
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

    def built_model(self) -> Model:
        """Return the translated model.

        Raises:
            Failure: the model has not been finished, or breaks an operator's rule.
        """
        if self.refusal:
            raise Failure(OH_NN_ReturnCode.OH_NN_FAILED, self.refusal)
        if self.finished is None:
            raise invalid("the model has not been finished")
        return self.finished


def build(model: OH_NNModel) -> Model:
    """Translate a model's operations to standard ones.

    Raises:
        Failure, Error: an operation breaks its operator's rule, or its results do not match the
            declared types.
    """
    builder = Builder("nnrt")
    values: dict[int, Operand] = {}
    for position, index in enumerate(model.inputs or ()):
        values[index] = builder.input(f"input{position}", model.tensors[index].declared)
    for operation in _sort(model):
        _add(model, operation, builder, values)
    for position, index in enumerate(model.outputs):
        if index not in values:
            raise ModelError(f"output {position} of the model is made by no operation")
        builder.output(f"output{position}", values[index])
    return builder.build()


def _sort(model: OH_NNModel) -> Iterator[Operation]:
    """Yield the operations in topological order."""
    producers: dict[int, int] = {}
    for position, operation in enumerate(model.operations):
        for index in operation.outputs:
            if (
                producers.setdefault(index, position) != position
                or model.tensors[index].value is not None
            ):
                raise ModelError(f"tensor {index} is made twice, or is a constant")
    dependencies = {
        position: [producers[index] for index in operation.inputs if index in producers]
        for position, operation in enumerate(model.operations)
    }
    try:
        for position in graphlib.TopologicalSorter(dependencies).static_order():
            yield model.operations[position]
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
    for row, input_count, types, _ in rows()[operation.code]:
        missing = [None] * max(input_count - len(inputs), 0)
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
    for operand, expected in zip(results, declared, strict=True):
        inferred = operand.type
        shapes = zip(inferred.shape or (), expected.shape or (), strict=False)
        shapes_match = inferred.shape is None or (
            len(inferred.shape) == len(expected.shape or ())
            and all(a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in shapes)
        )
        if inferred.element_type is not expected.element_type or not shapes_match:
            raise Failure(
                OH_NN_ReturnCode.OH_NN_FAILED,
                f"{operation.code.name}: makes {inferred}, not {expected}",
            )
