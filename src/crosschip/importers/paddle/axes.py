"""Axes as Paddle has them: of tensors that have none, and of inputs aligned with one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosschip.importers.paddle.context import Context
from crosschip.ir import ModelError, Operand
from crosschip.ops import Operator
from crosschip.ops.standard.layout import Reshape, Unsqueeze


def make_along(
    op: Context,
    operator: type[Operator],
    x: Operand,
    *arguments: object,
    outputs: Sequence[str] = ("Out",),
    **named: Any,
) -> None:
    """Build the operation that makes one variable in each output slot, along an axis.

    To Paddle, a tensor without axes has one of size 1: 0 and -1 name it.
    """
    if x.type.shape != ():
        op.make_each(operator, x, *arguments, outputs=outputs, **named)
        return
    results = op.add_all(operator, op.add(Reshape, x, (1,)), *arguments, **named)
    for operand, output in zip(results, outputs, strict=True):
        if op.count(output):
            op.make(Reshape, operand, (), output=output)


def aligned(op: Context) -> tuple[Operand, Operand]:
    """The two inputs, so that they broadcast from the last axis on, as NumPy does.

    Paddle 2 can lay the one with fewer axes along the other from any `axis` on.
    """
    x, y = op.input("X"), op.input("Y")
    axis = op.integer("axis", -1)
    if axis == -1 or x.type.shape is None or y.type.shape is None:
        return x, y
    missing = len(x.type.shape) - len(y.type.shape)
    after = abs(missing) - axis
    if missing and not 0 <= after <= abs(missing):
        raise ModelError(f"axis: {axis} does not fit inputs {x.type} and {y.type}")
    if missing > 0:
        return x, with_axes_after(op, y, after)
    if missing < 0:
        return with_axes_after(op, x, after), y
    return x, y


def with_axes_after(op: Context, operand: Operand, count: int) -> Operand:
    """The operand with axes of size 1 behind its own."""
    if not count:
        return operand
    if operand.value is not None:
        shape = operand.value.shape + (1,) * count
        return op.constant(operand.value.reshape(shape), operand.name)
    rank = op.rank(operand)
    return op.add(Unsqueeze, operand, tuple(range(rank, rank + count)))
