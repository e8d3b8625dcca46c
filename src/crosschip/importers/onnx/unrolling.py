"""Bounds for unrolling loops: one account for the whole model, which nothing refills."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crosschip.ir import UnsupportedError
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.slots import ComputedParameter

MAX_TRIPS = 64
"""So many times a loop runs at most that is unrolled."""

MAX_UNROLLED = 4_000
"""So many nodes may come out of the loops of a model."""

MAX_TRIED = 20_000
"""So many nodes may be imported in attempts to unroll, also in those that are taken back."""


class _TooMany(Exception):
    """An attempt has made too many nodes; ends the outermost attempt, whoever is between."""


@dataclass(slots=True)
class Attempt:
    """An attempt to unroll a loop, if it is allowed at all."""

    allowed: bool


class Unrolling:
    """The account of a model: how many nodes have been unrolled, and how many more tried."""

    def __init__(self) -> None:
        self._depth = 0
        self._unrolled = 0
        self._tried = 0

    def add(self, count: int) -> None:
        """Account for nodes that are imported inside of an attempt."""
        if self._depth:
            self._unrolled += count
            self._tried += count
            if self._unrolled > MAX_UNROLLED or self._tried > MAX_TRIED:
                raise _TooMany

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """Try to unroll one loop; what refuses it inside ends the attempt, and nothing else."""
        before = self._unrolled
        self._depth += 1
        try:
            yield Attempt(self._tried <= MAX_TRIED)
        except _TooMany:
            self._unrolled = before
            if self._depth > 1:
                raise
        except (UnsupportedError, ComputedParameter):
            self._unrolled = before
        finally:
            self._depth -= 1
