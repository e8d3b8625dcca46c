"""Bounds of integer operands, computed while a graph is built so that no run checks them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crosschip.ir import Dim, Operand, Operation
from crosschip.ir.dimension import is_natural
from crosschip.lowering.ranges.analysis import LONGEST, Assumptions, Ranges
from crosschip.lowering.ranges.ends import Lasts
from crosschip.lowering.ranges.interval import Interval


class Bounds:
    """Upper bounds of integer operands, without assumptions about the inputs of the model."""

    def __init__(self) -> None:
        nothing = Assumptions({}, {}, LONGEST, (), Interval(-math.inf, math.inf))
        self._ranges = Ranges(nothing, {}, floats=False)
        self._lasts = Lasts()

    def follow(self, operation: Operation) -> None:
        """Derive the bounds of an operation's outputs from those of its inputs."""
        self._ranges.follow(operation)
        self._lasts.follow(operation)

    def are_within(self, indices: Operand, sizes: Sequence[Dim]) -> bool:
        """Return whether all indices are certainly in the range [0, size).

        Args:
            indices: one index per element; with several sizes, one index per size along the
                last axis.
            sizes: the sizes of the axes that are indexed.
        """
        range_ = self._ranges.of(indices)
        lasts = self._lasts.of_columns(indices, len(sizes))
        return all(
            (last is not None and is_natural(size - 1 - last))
            or (range_ is not None and isinstance(size, int) and range_ in Interval(0, size - 1))
            for size, last in zip(sizes, lasts, strict=True)
        )

    def greatest(self, indices: Operand, count: int) -> Sequence[Dim] | None:
        """Return the greatest index per indexed axis, or `None` if unknown.

        Args:
            indices: indices of 0 or more.
            count: the number of indexed axes; index tuples lie along the last axis of `indices`.
        """
        return self._lasts.reached(indices, count)
