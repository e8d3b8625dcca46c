"""From a program's operands and operations to a model.

Images are NCHW in a model: what is stored in another layout is transposed where it comes in and
where it goes out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from crosschip.apis.nnadapter import operands as types
from crosschip.apis.nnadapter.enumerations import (
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
from crosschip.apis.nnadapter.results import invalid, misshapen
from crosschip.apis.nnadapter.signature import Signature, name_of
from crosschip.apis.nnadapter.sizes import OpenSizes
from crosschip.ir import Builder, Operand, TensorType, constant
from crosschip.ir.model import Origin
from crosschip.mapping.common import NNADAPTER_CODES
from crosschip.mapping.opsets import opset_mapping
from crosschip.mapping.translation import Row, import_operation, row_of
from crosschip.ops import operators
from crosschip.ops.standard.layout import Transpose

Order = Callable[[NNAdapterOperandLayoutCode, int], Sequence[int] | None]


@cache
def rows() -> Mapping[NNAdapterOperationCode, tuple[Row, int]]:
    """Every operator of NNAdapter, and how many of its last outputs need not be made, by code."""
    by_code = {}
    for operator in operators().values():
        foreign = opset_mapping(operator).nnadapter
        if foreign is not None:
            row = row_of(operator, foreign.operands, foreign.other_rules, NNADAPTER_CODES)
            by_code[NNAdapterOperationCode(foreign.code)] = (row, foreign.optional_outputs)
    return by_code


class Translator:
    """Puts operations into standard ones, one by one.

    Args:
        sizes: the open sizes.
    """

    def __init__(self, sizes: OpenSizes | None = None) -> None:
        self.builder = Builder("nnadapter")
        self.values: dict[NNAdapterOperand, Operand] = {}
        self._sizes = sizes or OpenSizes(())

    def input(self, operand: NNAdapterOperand, name: str) -> None:
        """Declare an input of the model."""
        value = self.builder.input(name, self._declared(operand, known=True))
        self.values[operand] = self._transposed(value, types.order, operand)

    def output(self, operand: NNAdapterOperand, name: str) -> None:
        """Hand an operand out."""
        value = self._transposed(self.values[operand], types.stored_order, operand)
        self.builder.output(name, value)

    def add(self, operation: NNAdapterOperation) -> None:
        """Add an operation.

        Raises:
            Failure, Error: it breaks a rule, or does not make what it is declared to.
        """
        row, optional = rows()[operation.code]
        named = tuple(operand.name for operand in operation.inputs if operand is not None)
        outputs = tuple(operand.name for operand in operation.outputs)
        self.builder.origins = (Origin(operation.code.name, named, outputs),)
        inputs = [None if operand is None else self.value(operand) for operand in operation.inputs]
        declared = [self._inner(operand) for operand in operation.outputs]
        results = import_operation(row, self.builder, inputs, declared, operation.name)
        if len(operation.outputs) > len(results) + optional:
            raise invalid(
                f"{operation.name}: makes {len(results)} output operands, not "
                f"{len(operation.outputs)}"
            )
        for operand, result in zip(operation.outputs, results, strict=False):
            self.values[operand] = result

    def value(self, operand: NNAdapterOperand) -> Operand:
        """The operand of the model that stands for one of NNAdapter's."""
        value = self.values.get(operand)
        if value is None:
            if operand.value is None:
                known = operand.type.lifetime is Lifetime.NNADAPTER_MODEL_INPUT
                value = Operand(operand.name, self._declared(operand, known=known))
                return self._transposed(value, types.order, operand)
            axes = types.order(operand.type.layout, operand.value.ndim)
            array = operand.value
            if axes is not None:
                array = np.ascontiguousarray(array.transpose(axes))
            quantization = types.permuted(self._declared(operand, known=True), axes).quantization
            value = constant(array, operand.name, quantization)
            self.values[operand] = value
        return value

    def type_of(self, operand: NNAdapterOperand) -> TensorType | None:
        """The type of an operand as it is stored; `None` where nothing is known."""
        value = self.values.get(operand)
        if value is None or value.type.shape is None:
            return None
        axes = types.stored_order(operand.type.layout, len(value.type.shape))
        return value.type if axes is None else types.permuted(value.type, axes)

    def _declared(self, operand: NNAdapterOperand, *, known: bool) -> TensorType:
        return types.tensor_type(
            operand.declared, lambda axis: self._sizes.of(operand, axis), known=known
        )

    def _inner(self, operand: NNAdapterOperand) -> TensorType:
        """The declared type with its axes in the order N, C, H, W."""
        stored = self._declared(operand, known=False)
        rank = len(stored.shape or ())
        return types.permuted(stored, types.order(operand.type.layout, rank))

    def _transposed(self, value: Operand, order: Order, operand: NNAdapterOperand) -> Operand:
        axes = order(operand.type.layout, len(value.type.shape or ()))
        return value if axes is None else self.builder.add(Transpose, value, axes)


def learn(model: NNAdapterModel, operation: NNAdapterOperation) -> None:
    """Find the types of what an operation makes that has just been added.

    Raises:
        Failure, Error: it breaks a rule.
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
    """Check a model as a whole, and build it.

    Raises:
        Failure, Error: it breaks a rule.
    """
    ordered = list(_ordered(model))
    sizes = OpenSizes(model.inputs)
    translator = Translator(sizes)
    for index, operand in enumerate(model.inputs):
        translator.input(operand, name_of("input", index, operand.type))
    for operation in ordered:
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
    return Finished(built, sizes.ranges, sizes.profiles)


def _ordered(model: NNAdapterModel) -> Iterator[NNAdapterOperation]:
    """The operations in an order in which each comes after what it reads; else as they were added.

    Raises:
        Failure: operands come from nowhere, from two places, or from themselves.
    """
    makers = _makers(model)
    waiting: dict[NNAdapterOperation, int] = {}
    readers: dict[NNAdapterOperation, list[NNAdapterOperation]] = {}
    for operation in model.operations:
        needed = {makers[o] for o in operation.inputs if o is not None and o in makers}
        waiting[operation] = len(needed)
        for maker in needed:
            readers.setdefault(maker, []).append(operation)
    ready = [operation.index for operation, count in waiting.items() if not count]
    done = 0
    while ready:
        operation = model.operations[heapq.heappop(ready)]
        done += 1
        yield operation
        for reader in readers.get(operation, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader.index)
    if done < len(model.operations):
        name = next(operation.name for operation, count in waiting.items() if count)
        raise invalid(f"{name} reads what follows from its own output")


def _makers(model: NNAdapterModel) -> Mapping[NNAdapterOperand, NNAdapterOperation]:
    """The operation that makes each operand that one makes."""
    if not model.outputs:
        raise invalid("the model's outputs have not been identified")
    makers: dict[NNAdapterOperand, NNAdapterOperation] = {}
    for operation in model.operations:
        for operand in operation.outputs:
            other = makers.setdefault(operand, operation)
            if other is not operation or operation.outputs.count(operand) > 1:
                raise invalid(f"{operand.name} is made by {other.name} and by {operation.name}")
            if operand.value is not None or operand in model.inputs:
                kind = "a constant" if operand.value is not None else "an input of the model"
                raise invalid(f"{operand.name} is {kind}, but {operation.name} makes it")
    for operation in model.operations:
        for read in operation.inputs:
            if read is None or read.value is not None or read in makers or read in model.inputs:
                continue
            raise invalid(
                f"{operation.name} reads {read.name}, which is no constant, no input of the "
                f"model, and made by no operation"
            )
    return makers


def _check_results(
    translator: Translator, operation: NNAdapterOperation, operand: NNAdapterOperand
) -> None:
    """Refuse an output that is not what it is declared to be."""
    inferred = translator.type_of(operand)
    if inferred is None:
        return
    declared = types.tensor_type(
        operand.declared, lambda axis: OpenSizes(()).of(operand, axis), known=False
    )
    if (inferred.element_type, inferred.quantization) != (
        declared.element_type,
        declared.quantization,
    ):
        raise invalid(
            f"{operation.name} makes {inferred}, but {operand.name} is declared {declared}"
        )
    if not inferred.fits(declared):
        raise misshapen(
            f"{operation.name} makes {inferred}, but {operand.name} is declared {declared}"
        )
