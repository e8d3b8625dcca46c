"""Limits on unrolling loops, counted for the whole model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crosschip.ir import UnsupportedError
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.slots import ComputedParameter

MAX_TRIPS = 64
"""The number of iterations up to which a loop is unrolled."""

MAX_UNROLLED = 4_000
"""The number of nodes that the unrolled loops of a model may have."""

MAX_TRIED = 20_000
"""The number of nodes that all attempts may import, failed ones included."""


class _TooMany(Exception):
    """Signal that too many nodes were imported; ends the outermost attempt."""


@dataclass(slots=True)
class Attempt:
    """Attempt to unroll a loop; `allowed` is false once the limit is reached."""

    allowed: bool


class Unrolling:
    """Counters of a model: nodes in unrolled loops, and nodes in all attempts."""

    def __init__(self) -> None:
        self._depth = 0
        self._unrolled = 0
        self._tried = 0

    def add(self, count: int) -> None:
        """Count nodes that are imported inside an attempt."""
        if self._depth:
            self._unrolled += count
            self._tried += count
            if self._unrolled > MAX_UNROLLED or self._tried > MAX_TRIED:
                raise _TooMany

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """Return a context that suppresses the errors of unrolling one loop."""
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
