"""A model as a list of the NNAdapter calls that build it."""

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
    """A call of `NNAdapterModel_addOperation`; operands are indices into `Calls.operands`.

    Attributes:
        code: the operator.
        inputs: the inputs; `None` for an omitted one.
        outputs: the outputs.
    """

    code: NNAdapterOperationCode
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]


@dataclass(slots=True)
class Calls:
    """The calls that build a model: operands, operations, then inputs and outputs.

    Attributes:
        operands: the type of each operand, and the elements of a constant.
        operations: the operations, in topological order.
        inputs: the indices of the model's inputs.
        outputs: the indices of the model's outputs.
    """

    operands: list[tuple[NNAdapterOperandType, Array | None]] = field(default_factory=list)
    operations: list[OperationCall] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    def replay(self) -> NNAdapterModel:
        """Make the calls and return the finished model.

        Raises:
            Error: a call fails; the message is the function's.
        """
        model = _checked_value(NNAdapterModel_create())
        try:
            operands = [self._operand(model, *operand) for operand in self.operands]
            for call in self.operations:
                input_operands = [
                    None if index is None else operands[index] for index in call.inputs
                ]
                output_operands = [operands[index] for index in call.outputs]
                _checked_value(
                    NNAdapterModel_addOperation(model, call.code, input_operands, output_operands)
                )
            inputs, outputs = (
                [operands[i] for i in indices] for indices in (self.inputs, self.outputs)
            )
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
    """Convert a model to calls.

    Operations that NNAdapter does not have are decomposed.

    Args:
        model: the model, with inputs and outputs in order.
        profiles: the values of the dynamic dimensions, by name, for each combination of input
            shapes; none for any shapes.

    Raises:
        UnsupportedError: NNAdapter lacks an operation, a type or a combination of them; the
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
        inputs = tuple(
            None if operand is None else self.index_of(operand) for operand in expressed.inputs
        )
        outputs = tuple(map(self.index_of, expressed.outputs))
        self.calls.operations.append(OperationCall(key, inputs, outputs))


@cache
def _by_operator() -> Mapping[type[Operator], tuple[NNAdapterOperationCode, Row]]:
    return {row.operator: (code, row) for code, (row, _) in rows().items()}


def _checked_value(answer: tuple[NNAdapterResultCode, T | None]) -> T:
    code, value = answer
    check(code)
    assert value is not None, "the call succeeded"
    return value
