"""Translation of a program's operands and operations to a model.

Images are NCHW in the model: inputs and outputs that are stored in another layout are transposed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from crosschip.apis.nnadapter import operands as types
from crosschip.apis.nnadapter.enumerations import (
    NNADAPTER_UNKNOWN,
    NNAdapterOperandLayoutCode,
    NNAdapterOperationCode,
)
from crosschip.apis.nnadapter.enumerations import NNAdapterOperandLifetimeCode as Lifetime
from crosschip.apis.nnadapter.graph import (
    Finished,
    NNAdapterModel,
    NNAdapterOperand,
    NNAdapterOperation,
)
from crosschip.apis.nnadapter.results import invalid, invalid_dimensions
from crosschip.apis.nnadapter.signature import Signature, name_of
from crosschip.ir import Builder, Dim, Operand, TensorType, constant, symbol
from crosschip.ir.model import Origin
from crosschip.mapping.common import NNADAPTER_CODES
from crosschip.mapping.opsets import opset_mapping
from crosschip.mapping.translation import Row, import_operation, row_of
from crosschip.ops import operators
from crosschip.ops.standard.layout import Transpose


class DynamicDimensions:
    """The dynamic dimensions of a model's inputs.

    The i-th listed shapes of all inputs belong together. Therefore two dimensions that are equal in
    every combination become one symbol, and a dimension that never differs becomes static.

    Args:
        inputs: the inputs.

    Raises:
        Failure: inputs list different numbers of shapes.
    """

    def __init__(self, inputs: Sequence[NNAdapterOperand]) -> None:
        counts = {operand.type.dimensions.dynamic_count for operand in inputs} - {0}
        if len(counts) > 1:
            raise invalid_dimensions(f"inputs allow different numbers of shapes: {sorted(counts)}")
        self._count = max(counts, default=0)
        self._names: dict[tuple[int, ...], str] = {}
        self._by_axis: dict[tuple[NNAdapterOperand, int], Dim] = {}
        for operand in inputs:
            for axis, size in enumerate(operand.type.dimensions.data):
                if size == NNADAPTER_UNKNOWN:
                    self._by_axis[operand, axis] = self._dimension(operand, axis)

    def of(self, operand: NNAdapterOperand, axis: int) -> Dim:
        """Return the size of an axis; for an operand that is no input, a symbol of its own."""
        return self._by_axis.get((operand, axis), symbol(f"{operand.name}_{axis}"))

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The minimum and maximum of each dimension with listed shapes, by name."""
        return {name: (min(values), max(values)) for values, name in self._names.items()}

    @property
    def profiles(self) -> tuple[dict[str, int], ...]:
        """The values of the dynamic dimensions in each combination of shapes, by name."""
        if not self._names:
            return ()
        return tuple(
            {name: values[index] for values, name in self._names.items()}
            for index in range(self._count)
        )

    def _dimension(self, operand: NNAdapterOperand, axis: int) -> Dim:
        shapes = operand.type.dimensions.dynamic_data
        if not shapes:
            return symbol(f"{operand.name}_{axis}")
        values = tuple(shape[axis] for shape in shapes)
        if len(set(values)) == 1:
            return values[0]
        return symbol(self._names.setdefault(values, f"{operand.name}_{axis}"))


Order = Callable[[NNAdapterOperandLayoutCode, int], Sequence[int] | None]


@cache
def rows() -> Mapping[NNAdapterOperationCode, tuple[Row, int]]:
    """Return each NNAdapter operator's mapping row, and how many trailing outputs are optional."""
    by_code = {}
    for operator in operators().values():
        foreign = opset_mapping(operator).nnadapter
        if foreign is not None:
            row = row_of(operator, foreign.operands, foreign.other_rules, NNADAPTER_CODES)
            by_code[NNAdapterOperationCode(foreign.code)] = (row, foreign.optional_outputs)
    return by_code


class Translator:
    """Translates operations to standard ones, one at a time.

    Args:
        dimensions: the dynamic dimensions of the inputs.
    """

    def __init__(self, dimensions: DynamicDimensions | None = None) -> None:
        self.builder = Builder("nnadapter")
        self.values: dict[NNAdapterOperand, Operand] = {}
        self._dimensions = dimensions or DynamicDimensions(())

    def input(self, operand: NNAdapterOperand, name: str) -> None:
        """Declare an input of the model."""
        value = self.builder.input(name, self._declared(operand, ranked=True))
        self.values[operand] = self._transpose(value, types.order, operand)

    def output(self, operand: NNAdapterOperand, name: str) -> None:
        """Declare an output of the model."""
        value = self._transpose(self.values[operand], types.stored_order, operand)
        self.builder.output(name, value)

    def add(self, operation: NNAdapterOperation) -> None:
        """Add an operation.

        Raises:
            Failure, Error: the operation breaks a rule, or its results do not match the
                declared types.
        """
        row, optional = rows()[operation.code]
        inputs_by_name = tuple(operand.name for operand in operation.inputs if operand is not None)
        outputs = tuple(operand.name for operand in operation.outputs)
        self.builder.origins = (Origin(operation.code.name, inputs_by_name, outputs),)
        inputs = [None if operand is None else self.value(operand) for operand in operation.inputs]
        declared = [self._declared_nchw(operand) for operand in operation.outputs]
        results = import_operation(row, self.builder, inputs, declared, operation.name)
        if len(operation.outputs) > len(results) + optional:
            raise invalid(
                f"{operation.name}: makes {len(results)} output operands, not "
                f"{len(operation.outputs)}"
            )
        for operand, result in zip(operation.outputs, results, strict=False):
            self.values[operand] = result

    def value(self, operand: NNAdapterOperand) -> Operand:
        """Return the model's operand for one of NNAdapter's."""
        value = self.values.get(operand)
        if value is None:
            if operand.value is None:
                is_input = operand.type.lifetime is Lifetime.NNADAPTER_MODEL_INPUT
                value = Operand(operand.name, self._declared(operand, ranked=is_input))
                return self._transpose(value, types.order, operand)
            axes = types.order(operand.type.layout, operand.value.ndim)
            array = operand.value
            if axes is not None:
                array = np.ascontiguousarray(array.transpose(axes))
            quantization = types.permute(self._declared(operand, ranked=True), axes).quantization
            value = constant(array, operand.name, quantization)
            self.values[operand] = value
        return value

    def type_of(self, operand: NNAdapterOperand) -> TensorType | None:
        """Return an operand's type in the stored layout; `None` if nothing is known."""
        value = self.values.get(operand)
        if value is None or value.type.shape is None:
            return None
        axes = types.stored_order(operand.type.layout, len(value.type.shape))
        return value.type if axes is None else types.permute(value.type, axes)

    def _declared(self, operand: NNAdapterOperand, *, ranked: bool) -> TensorType:
        return types.tensor_type(
            operand.declared, lambda axis: self._dimensions.of(operand, axis), ranked=ranked
        )

    def _declared_nchw(self, operand: NNAdapterOperand) -> TensorType:
        """Return the declared type with its axes permuted to N, C, H, W."""
        stored = self._declared(operand, ranked=False)
        rank = len(stored.shape or ())
        return types.permute(stored, types.order(operand.type.layout, rank))

    def _transpose(self, value: Operand, order: Order, operand: NNAdapterOperand) -> Operand:
        axes = order(operand.type.layout, len(value.type.shape or ()))
        return value if axes is None else self.builder.add(Transpose, value, axes)


def infer(model: NNAdapterModel, operation: NNAdapterOperation) -> None:
    """Infer the types of the outputs of an operation that has just been added.

    Raises:
        Failure, Error: the operation breaks a rule.
    """
    if model.draft is None:
        model.draft = Translator()
    model.draft.add(operation)
    _write_types(model.draft, operation)


def _write_types(translator: Translator, operation: NNAdapterOperation) -> None:
    for operand in operation.outputs:
        type_ = translator.type_of(operand)
        if type_ is None:
            continue
        operand.type.dimensions.data = types.dimensions(type_.shape)
        if operand.type.lifetime is Lifetime.NNADAPTER_TEMPORARY_VARIABLE and type_.shape_value:
            operand.type.lifetime = Lifetime.NNADAPTER_TEMPORARY_SHAPE


def build(model: NNAdapterModel) -> Finished:
    """Check a whole model and build it.

    Raises:
        Failure, Error: the model breaks a rule.
    """
    operations = list(_sort(model))
    dimensions = DynamicDimensions(model.inputs)
    translator = Translator(dimensions)
    for index, operand in enumerate(model.inputs):
        translator.input(operand, name_of("input", index, operand.type))
    for operation in operations:
        translator.add(operation)
        for operand in operation.outputs:
            _check_results(translator, operation, operand)
        _write_types(translator, operation)
    for index, operand in enumerate(model.outputs):
        if operand not in translator.values:
            raise invalid(f"{operand.name} is an output of the model, but nothing makes it")
        translator.output(operand, name_of("output", index, operand.type))
    built = translator.builder.build()
    signature = Signature.of(built.inputs, built.outputs)
    for operand, type_ in zip(model.outputs, signature.outputs, strict=True):
        operand.type = type_.copy()
    return Finished(built, dimensions.ranges, dimensions.profiles)


def _sort(model: NNAdapterModel) -> Iterator[NNAdapterOperation]:
    """Yield the operations in topological order, as added where possible.

    Raises:
        Failure: an operand has no producer, two producers, or depends on itself.
    """
    producers = _producers(model)
    waiting: dict[NNAdapterOperation, int] = {}
    readers: dict[NNAdapterOperation, list[NNAdapterOperation]] = {}
    for operation in model.operations:
        dependencies = {producers[o] for o in operation.inputs if o is not None and o in producers}
        waiting[operation] = len(dependencies)
        for producer in dependencies:
            readers.setdefault(producer, []).append(operation)
    ready = [operation.index for operation, count in waiting.items() if not count]
    count_sorted = 0
    while ready:
        operation = model.operations[heapq.heappop(ready)]
        count_sorted += 1
        yield operation
        for reader in readers.get(operation, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader.index)
    if count_sorted < len(model.operations):
        name = next(operation.name for operation, count in waiting.items() if count)
        raise invalid(f"{name} reads what follows from its own output")


def _producers(model: NNAdapterModel) -> Mapping[NNAdapterOperand, NNAdapterOperation]:
    """Return the producer of each operation output."""
    if not model.outputs:
        raise invalid("the model's outputs have not been identified")
    producers: dict[NNAdapterOperand, NNAdapterOperation] = {}
    for operation in model.operations:
        for operand in operation.outputs:
            other = producers.setdefault(operand, operation)
            if other is not operation or operation.outputs.count(operand) > 1:
                raise invalid(f"{operand.name} is made by {other.name} and by {operation.name}")
            if operand.value is not None or operand in model.inputs:
                kind = "a constant" if operand.value is not None else "an input of the model"
                raise invalid(f"{operand.name} is {kind}, but {operation.name} makes it")
    for operation in model.operations:
        for read in operation.inputs:
            if read is None or read.value is not None or read in producers or read in model.inputs:
                continue
            raise invalid(
                f"{operation.name} reads {read.name}, which is no constant, no input of the "
                f"model, and made by no operation"
            )
    return producers


def _check_results(
    translator: Translator, operation: NNAdapterOperation, operand: NNAdapterOperand
) -> None:
    """Raise a failure unless an output matches its declared type."""
    inferred = translator.type_of(operand)
    if inferred is None:
        return
    declared = types.tensor_type(
        operand.declared, lambda axis: DynamicDimensions(()).of(operand, axis), ranked=False
    )
    if (inferred.element_type, inferred.quantization) != (
        declared.element_type,
        declared.quantization,
    ):
        raise invalid(
            f"{operation.name} makes {inferred}, but {operand.name} is declared {declared}"
        )
    if not inferred.fits(declared):
        raise invalid_dimensions(
            f"{operation.name} makes {inferred}, but {operand.name} is declared {declared}"
        )
