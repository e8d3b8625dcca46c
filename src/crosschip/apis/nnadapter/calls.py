"""A model written out as calls of the functions that build it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from crosschip.apis.nnadapter.results import last_error
from crosschip.apis.nnadapter.signature import with_shapes
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.ir import Array, Builder, Error, Model, Operand, Operation, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.definition.translation import Row, outward
from crosschip.ops.standard.conversion import Assign

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
        model = _made(NNAdapterModel_create())
        try:
            operands = [self._operand(model, *operand) for operand in self.operands]
            for call in self.operations:
                read = [None if index is None else operands[index] for index in call.inputs]
                made = [operands[index] for index in call.outputs]
                _made(NNAdapterModel_addOperation(model, call.code, read, made))
            inputs, outputs = ([operands[i] for i in ends] for ends in (self.inputs, self.outputs))
            _check(NNAdapterModel_identifyInputsAndOutputs(model, inputs, outputs))
            _check(NNAdapterModel_finish(model))
        except Error:
            NNAdapterModel_destroy(model)
            raise
        return model

    @staticmethod
    def _operand(
        model: NNAdapterModel, type_: NNAdapterOperandType, value: Array | None
    ) -> NNAdapterOperand:
        operand = _made(NNAdapterModel_addOperand(model, type_))
        if value is not None:
            _check(NNAdapterModel_setOperandValue(operand, value, False))
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
    return _Writer(profiles).written(model)


class _Writer:
    def __init__(self, profiles: Sequence[Mapping[str, int]]) -> None:
        self._calls = Calls()
        self._places: dict[Operand, int] = {}
        self._same: dict[Operand, Operand] = {}
        self._profiles = profiles

    def written(self, model: Model) -> Calls:
        self._calls.inputs = tuple(map(self._place, model.inputs.values()))
        for operation in model.operations:
            self._operation(operation)
        outputs: list[int] = []
        for operand in model.outputs.values():
            place = self._place(operand)
            constant = self._calls.operands[place][1] is not None
            if constant or place in self._calls.inputs or place in outputs:
                place = self._copied(operand)
            outputs.append(place)
        self._calls.outputs = tuple(outputs)
        return self._calls

    def _operation(self, operation: Operation) -> None:
        if not isinstance(operation, Operator):
            raise UnsupportedError(f"{operation.name!r}: NNAdapter has no {operation.type}")
        entry = _by_operator().get(type(operation))
        refusal = UnsupportedError(f"{operation.name!r}: NNAdapter has no {operation.type}")
        if entry is not None:
            try:
                return self._direct(*entry, operation)
            except UnsupportedError as error:
                refusal = error
        b = Builder(prefix=f"{operation.name}.")
        results = operation.decomposition(b)
        if results is None:
            raise refusal
        try:
            for part in b.operations:
                self._operation(part)
        except UnsupportedError:
            raise refusal from None
        self._same.update(zip(operation.outputs, results, strict=True))
        return None

    def _direct(self, code: NNAdapterOperationCode, row: Row, operation: Operator) -> None:
        found = outward(row, operation)
        for operand in (*found.inputs, *found.outputs):
            if operand is not None:
                operand_type(self._resolved(operand).type)  # refused before anything is written
        for earlier in found.before:
            self._operation(earlier)
        read = tuple(None if operand is None else self._place(operand) for operand in found.inputs)
        made = tuple(map(self._place, found.outputs))
        self._calls.operations.append(OperationCall(code, read, made))
        for follower in found.after:
            self._operation(follower)

    def _copied(self, operand: Operand) -> int:
        copy = Operand(f"{operand.name}.copy", operand.type)
        name = f"{operand.name}.assign"
        self._operation(Assign(name, (self._resolved(operand),), (copy,)))
        return self._place(copy)

    def _resolved(self, operand: Operand) -> Operand:
        while operand in self._same:
            operand = self._same[operand]
        return operand

    def _place(self, operand: Operand) -> int:
        operand = self._resolved(operand)
        if operand not in self._places:
            self._places[operand] = len(self._calls.operands)
            type_ = with_shapes(operand.type, self._profiles)
            self._calls.operands.append((type_, operand.value))
        return self._places[operand]


@cache
def _by_operator() -> Mapping[type[Operator], tuple[NNAdapterOperationCode, Row]]:
    return {row.operator: (code, row) for code, (row, _) in rows().items()}


def _made(answer: tuple[NNAdapterResultCode, T | None]) -> T:
    code, value = answer
    _check(code)
    assert value is not None, "the call succeeded"
    return value


def _check(code: NNAdapterResultCode) -> None:
    if code:
        raise Error(f"{last_error()} ({code.name})")
