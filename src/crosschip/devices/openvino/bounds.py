"""What is known of integers while a model is built, so that no run need look at them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosschip.ir import Dim, Operand, Operation
from crosschip.ir.dimension import is_natural
from crosschip.lowering.ranges.analysis import LONGEST, Assumptions, Ranges
from crosschip.lowering.ranges.interval import Interval
from crosschip.lowering.ranges.upper_bounds import UpperBounds


class Bounds:
    """The bounds of integers, of which nothing is assumed."""

    def __init__(self) -> None:
        nothing = Assumptions({}, {}, LONGEST, (), Interval(-math.inf, math.inf))
        self._ranges = Ranges(nothing, {}, floats=False)
        self._lasts = UpperBounds()

    def follow(self, operation: Operation) -> None:
        """Find the bounds of what an operation makes, of whose inputs those are known."""
        self._ranges.follow(operation)
        self._lasts.follow(operation)

    def are_within(self, indices: Operand, sizes: Sequence[Dim]) -> bool:
        """Tell whether indices are sure to be in the ranges that they point into.

        Args:
            indices: one index an element; or with several sizes, one for each along the last axis.
            sizes: how many there are to point to.
        """
        range_ = self._ranges.of(indices)
        lasts = self._lasts.of_columns(indices, len(sizes))
        return all(
            (last is not None and is_natural(size - 1 - last))
            or (range_ is not None and isinstance(size, int) and range_ in Interval(0, size - 1))
            for size, last in zip(sizes, lasts, strict=True)
        )

    def greatest(self, indices: Operand, count: int) -> Sequence[Dim] | None:
        """The greatest of the indices that there are, if any are.

        Args:
            indices: none of them is below 0.
            count: how many of them stand for one place, along the last axis.

        Returns:
            One for each of so many; `None` if they are not known.
        """
        return self._lasts.reached(indices, count)
