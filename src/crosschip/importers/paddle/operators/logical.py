"""Logical and bitwise operators, and selection by a condition."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.axes import broadcast_inputs
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, Operand
from crosschip.ops import Operator
from crosschip.ops.standard.logical import (
    And,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Not,
    Or,
    Where,
    Xor,
)

_LOGIC: dict[str, type[Operator]] = {"logical_and": And, "logical_or": Or, "logical_xor": Xor}
_BITWISE: dict[str, tuple[type[Operator], type[Operator]]] = {
    "bitwise_and": (And, BitwiseAnd),
    "bitwise_or": (Or, BitwiseOr),
    "bitwise_xor": (Xor, BitwiseXor),
}
"""The operators on booleans and on integers."""


def _logic(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, _as_bool(op, "X"), _as_bool(op, "Y"))


for _name, _operator in _LOGIC.items():
    imports(_name)(_logic(_operator))


@imports("logical_not")
def logical_not(op: Context) -> None:
    op.make(Not, _as_bool(op, "X"))


def _as_bool(op: Context, slot: str) -> Operand:
    """Convert an input to bool; nonzero is true."""
    return op.as_type(op.input(slot), ElementType.BOOL)


@imports("where")
def where(op: Context) -> None:
    op.make(Where, op.input("Condition"), op.input("X"), op.input("Y"))


def _bitwise(on_bool: type[Operator], on_integers: type[Operator]) -> Callable[[Context], None]:
    def combine(op: Context) -> None:
        x, y = broadcast_inputs(op)
        op.make(on_bool if x.type.element_type is ElementType.BOOL else on_integers, x, y)

    return combine


for _name, _operators in _BITWISE.items():
    imports(_name)(_bitwise(*_operators))


@imports("bitwise_not")
def bitwise_not(op: Context) -> None:
    x = op.input()
    op.make(Not if x.type.element_type is ElementType.BOOL else BitwiseNot, x)
