"""Axes: of scalars, of inputs that broadcast, and axes that are computed when the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.ir import ElementType, ModelError, Operand
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Mod
from crosschip.ops.standard.comparison import Equal, GreaterEqual, Less
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.reduction import ReduceProd


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


class ComputedAxis:
    """An axis of tensors of one rank, which only a run knows.

    A tensor is reshaped so that the sizes before the axis become one, and those from the axis on or
    behind it another: along the result's axes, of which each place is known, operators work.

    Attributes:
        exists: whether the tensors have such an axis, a boolean.
        is_it: for each of their axes, whether it is this one.
    """

    def __init__(self, op: Context, axis: Operand, rank: int) -> None:
        """Take the operand of one integer as an axis; a negative one counts from the end."""
        self._op = op
        axis = op.as_type(op.add(Reshape, axis, ()), ElementType.INT64)
        is_low = op.add(GreaterEqual, axis, np.int64(-rank))
        self.exists = op.add(And, is_low, op.add(Less, axis, np.int64(rank)))
        axis = op.add(Mod, axis, np.int64(rank))
        numbers = op.constant(np.arange(rank), "numbers")
        self._is_before = op.add(Less, numbers, axis)
        self._is_behind = op.add(Less, axis, numbers)
        self.is_it = op.add(Equal, numbers, axis)

    def before(self, sizes: Operand) -> Operand:
        """The product of the sizes before the axis, a list of one."""
        return self._product(self._is_before, sizes, np.int64(1))

    def after(self, sizes: Operand) -> Operand:
        """The product of the sizes behind the axis, a list of one."""
        return self._product(self._is_behind, sizes, np.int64(1))

    def size(self, sizes: Operand) -> Operand:
        """The size of the axis, a list of one."""
        return self._product(self.is_it, sizes, np.int64(1))

    def from_it_on(self, sizes: Operand) -> Operand:
        """The product of the sizes of the axis and of those behind it, a list of one."""
        return self._product(self._is_before, np.int64(1), sizes)

    def _product(
        self, where: Operand, of: Operand | np.int64, others: Operand | np.int64
    ) -> Operand:
        return self._op.add(ReduceProd, self._op.add(Where, where, of, others), (0,), True)
