"""Truth values, bits, and choices by them."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.axes import aligned
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
"""On elements that are true or false, and on integers."""


def _logic(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, _truth(op, "X"), _truth(op, "Y"))


for _name, _operator in _LOGIC.items():
    imports(_name)(_logic(_operator))


@imports("logical_not")
def logical_not(op: Context) -> None:
    op.make(Not, _truth(op, "X"))


def _truth(op: Context, slot: str) -> Operand:
    """The truth of each element of an input: it is not 0."""
    return op.as_type(op.input(slot), ElementType.BOOL)


@imports("where")
def where(op: Context) -> None:
    op.make(Where, op.input("Condition"), op.input("X"), op.input("Y"))


def _bitwise(on_truth: type[Operator], on_bits: type[Operator]) -> Callable[[Context], None]:
    def combine(op: Context) -> None:
        x, y = aligned(op)
        is_truth = x.type.element_type is ElementType.BOOL
        op.make(on_truth if is_truth else on_bits, x, y)

    return combine


for _name, (_on_truth, _on_bits) in _BITWISE.items():
    imports(_name)(_bitwise(_on_truth, _on_bits))


@imports("bitwise_not")
def bitwise_not(op: Context) -> None:
    x = op.input()
    op.make(Not if x.type.element_type is ElementType.BOOL else BitwiseNot, x)
