"""Comparisons, logic, and choices by them."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.operators.alignment import aligned
from crosschip.importers.paddle.table import imports
from crosschip.ir import ElementType, Operand
from crosschip.ops import Operator
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from crosschip.ops.standard.logical import And, Not, Or, Where, Xor

_COMPARISONS: dict[str, type[Operator]] = {
    "equal": Equal,
    "not_equal": NotEqual,
    "less_than": Less,
    "less_equal": LessEqual,
    "greater_than": Greater,
    "greater_equal": GreaterEqual,
}

_LOGIC: dict[str, type[Operator]] = {"logical_and": And, "logical_or": Or, "logical_xor": Xor}


def _logic(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, _truth(op, "X"), _truth(op, "Y"))


def _comparison(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, *aligned(op))


for _name, _operator in _COMPARISONS.items():
    imports(_name)(_comparison(_operator))


for _name, _operator in _LOGIC.items():
    imports(_name)(_logic(_operator))


@imports("logical_not")
def logical_not(op: Context) -> None:
    op.make(Not, _truth(op, "X"))


def _truth(op: Context, slot: str) -> Operand:
    """Whether each element of an input is not 0."""
    return op.as_type(op.input(slot), ElementType.BOOL)


@imports("where")
def where(op: Context) -> None:
    op.make(Where, op.input("Condition"), op.input("X"), op.input("Y"))
