"""A model written out as calls of the functions that build it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from crosschip.apis.nnadapter.building import rows
from crosschip.apis.nnadapter.enumerations import NNAdapterOperationCode, NNAdapterResultCode
from crosschip.apis.nnadapter.graph import NNAdapterModel, NNAdapterOperand
from crosschip.apis.nnadapter.model import (
    NNAdapterModel_addOperand,
    NNAdapterModel_addOperation,
    NNAdapterModel_create,
    NNAdapterModel_destroy,
    NNAdapterModel_finish,
    NNAdapterModel_identifyInputsAndOutputs,
    NNAdapterModel_setOperandValue,
)
from crosschip.apis.nnadapter.operands import operand_type
from crosschip.apis.nnadapter.signature import with_shapes
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.apis.results import check
from crosschip.ir import Array, Error, Model, Operand
from crosschip.mapping.translation import Expressed, Row, export_operation
from crosschip.mapping.writer import Writer
from crosschip.ops import Operator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OperationCall:
    """A call of `NNAdapterModel_addOperation`; operands are told by their place in `Calls`.

    Attributes:
        code: the operator.
        inputs: the operands that it reads; `None` where one is left out.
        outputs: those that it makes.
    """

    code: NNAdapterOperationCode
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]


@dataclass(slots=True)
class Calls:
    """The calls that build a model: its operands, then its operations, then what goes in and out.

    Attributes:
        operands: the type of each operand, and its elements if it is a constant.
        operations: the operations, each after those that make what it reads.
        inputs: the operands that are the model's inputs.
        outputs: those that are its outputs.
    """

    operands: list[tuple[NNAdapterOperandType, Array | None]] = field(default_factory=list)
    operations: list[OperationCall] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    def replay(self) -> NNAdapterModel:
        """Make the calls; the model is finished.

        Raises:
            Error: a call fails; the message is the face's.
        """
        model = _checked_value(NNAdapterModel_create())
        try:
            operands = [self._operand(model, *operand) for operand in self.operands]
            for call in self.operations:
                read = [None if index is None else operands[index] for index in call.inputs]
                output_operands = [operands[index] for index in call.outputs]
                _checked_value(NNAdapterModel_addOperation(model, call.code, read, output_operands))
            inputs, outputs = ([operands[i] for i in ends] for ends in (self.inputs, self.outputs))
            check(NNAdapterModel_identifyInputsAndOutputs(model, inputs, outputs))
            check(NNAdapterModel_finish(model))
        except Error:
            NNAdapterModel_destroy(model)
            raise
        return model

    @staticmethod
    def _operand(
        model: NNAdapterModel, type_: NNAdapterOperandType, value: Array | None
    ) -> NNAdapterOperand:
        operand = _checked_value(NNAdapterModel_addOperand(model, type_))
        if value is not None:
            check(NNAdapterModel_setOperandValue(operand, value, False))
        return operand


def calls(model: Model, profiles: Sequence[Mapping[str, int]] = ()) -> Calls:
    """Write a model out as calls.

    What NNAdapter has no operator for is written as the simpler operators that it decomposes into.

    Args:
        model: the model, with inputs and outputs in their order.
        profiles: values of its open sizes, by name, for each of the shapes that inputs may have;
            none if they may have any.

    Raises:
        UnsupportedError: it has an operation, a type or a use of one that NNAdapter has not; the
            message names it.
    """
    writer = _Writer(profiles)
    inputs, outputs = writer.write(model)
    writer.calls.inputs, writer.calls.outputs = tuple(inputs), tuple(outputs)
    return writer.calls


class _Writer(Writer[NNAdapterOperationCode]):
    def __init__(self, profiles: Sequence[Mapping[str, int]]) -> None:
        super().__init__("NNAdapter")
        self.calls = Calls()
        self._profiles = profiles

    def expressions(
        self, operation: Operator
    ) -> Iterator[tuple[NNAdapterOperationCode, Expressed]]:
        entry = _by_operator().get(type(operation))
        if entry is not None:
            code, row = entry
            yield code, export_operation(row, operation)

    def check(self, operand: Operand) -> None:
        operand_type(operand.type)

    def declare(self, operand: Operand) -> None:
        type_ = with_shapes(operand.type, self._profiles)
        self.calls.operands.append((type_, operand.value))

    def call(self, key: NNAdapterOperationCode, expressed: Expressed) -> None:
        read = tuple(
            None if operand is None else self.index_of(operand) for operand in expressed.inputs
        )
        outputs = tuple(map(self.index_of, expressed.outputs))
        self.calls.operations.append(OperationCall(key, read, outputs))


@cache
def _by_operator() -> Mapping[type[Operator], tuple[NNAdapterOperationCode, Row]]:
    return {row.operator: (code, row) for code, (row, _) in rows().items()}


def _checked_value(answer: tuple[NNAdapterResultCode, T | None]) -> T:
    code, value = answer
    check(code)
    assert value is not None, "the call succeeded"
    return value
