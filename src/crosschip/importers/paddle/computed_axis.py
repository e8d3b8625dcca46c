"""An axis that only a run knows."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.arithmetic import Mod
from crosschip.ops.standard.comparison import Equal, GreaterEqual, Less
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.reduction import ReduceProd


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
