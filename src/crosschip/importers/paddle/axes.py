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


def make_along_axis(
    op: Context,
    operator: type[Operator],
    x: Operand,
    *arguments: object,
    outputs: Sequence[str] = ("Out",),
    **keywords: Any,
) -> None:
    """Build an operation along an axis, which defines the one variable in each output slot.

    Paddle treats a scalar as a tensor with one axis of size 1, which is axis 0 or -1.
    """
    if x.type.shape != ():
        op.make_each(operator, x, *arguments, outputs=outputs, **keywords)
        return
    results = op.add_all(operator, op.add(Reshape, x, (1,)), *arguments, **keywords)
    for operand, output in zip(results, outputs, strict=True):
        if op.count(output):
            op.make(Reshape, operand, (), output=output)


def broadcast_inputs(op: Context) -> tuple[Operand, Operand]:
    """Return `X` and `Y` with shapes that broadcast as in NumPy.

    In Paddle 2, `axis` is the axis of the input of higher rank that the first axis of the other
    input corresponds to.
    """
    x, y = op.input("X"), op.input("Y")
    axis = op.integer("axis", -1)
    if axis == -1 or x.type.shape is None or y.type.shape is None:
        return x, y
    missing = len(x.type.shape) - len(y.type.shape)
    trailing = abs(missing) - axis
    if missing and not 0 <= trailing <= abs(missing):
        raise ModelError(f"axis: {axis} does not fit inputs {x.type} and {y.type}")
    if missing > 0:
        return x, append_axes(op, y, trailing)
    if missing < 0:
        return append_axes(op, x, trailing), y
    return x, y


def append_axes(op: Context, operand: Operand, count: int) -> Operand:
    """Append axes of size 1 to the shape of an operand."""
    if not count:
        return operand
    if operand.value is not None:
        shape = operand.value.shape + (1,) * count
        return op.constant(operand.value.reshape(shape), operand.name)
    rank = op.rank(operand)
    return op.add(Unsqueeze, operand, tuple(range(rank, rank + count)))


class ComputedAxis:
    """An axis, of tensors of known rank, that is computed when the model runs.

    Operators work on the tensor reshaped to [size_before, size, size_after], whose axes are known.
    All sizes are lists of one int64.

    Attributes:
        exists: whether the tensors have the axis, a boolean.
        is_axis: whether each axis is this one, booleans [rank].
    """

    def __init__(self, op: Context, axis: Operand, rank: int) -> None:
        """Compute the masks for an operand with one integer, which may be negative."""
        self._op = op
        axis = op.as_type(op.add(Reshape, axis, ()), ElementType.INT64)
        is_above_min = op.add(GreaterEqual, axis, np.int64(-rank))
        self.exists = op.add(And, is_above_min, op.add(Less, axis, np.int64(rank)))
        axis = op.add(Mod, axis, np.int64(rank))
        numbers = op.constant(np.arange(rank), "numbers")
        self._is_before = op.add(Less, numbers, axis)
        self._is_after = op.add(Less, axis, numbers)
        self.is_axis = op.add(Equal, numbers, axis)

    def size_before(self, sizes: Operand) -> Operand:
        """Return the product of the sizes before the axis."""
        return self._product(self._is_before, sizes, np.int64(1))

    def size_after(self, sizes: Operand) -> Operand:
        """Return the product of the sizes after the axis."""
        return self._product(self._is_after, sizes, np.int64(1))

    def size(self, sizes: Operand) -> Operand:
        """Return the size of the axis."""
        return self._product(self.is_axis, sizes, np.int64(1))

    def size_from(self, sizes: Operand) -> Operand:
        """Return the product of the sizes of the axis and of those after it."""
        return self._product(self._is_before, np.int64(1), sizes)

    def _product(
        self, where: Operand, of: Operand | np.int64, others: Operand | np.int64
    ) -> Operand:
        return self._op.add(ReduceProd, self._op.add(Where, where, of, others), (0,), True)
