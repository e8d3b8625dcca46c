"""Histograms of run times, and their statistics."""

from __future__ import annotations

import math
import threading

import numpy as np

from crosschip.ir.dataclass import dataclass

_FINE = 32
"""The number of classes per octave, for a resolution of 2 %."""

_LEAST, _MOST = -30, 20
"""The range of binary exponents of the seconds: from a nanosecond to eleven days."""

_PENDING = 512
"""The maximum number of times that are buffered before they are counted."""


class Histogram:
    """Times in classes whose width grows with the time, in constant memory."""

    def __init__(self) -> None:
        self._pending: list[float] = []
        self._counts = np.zeros((_MOST - _LEAST) * _FINE, np.int64)
        self._seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Add a time, mostly without a lock."""
        pending = self._pending
        pending.append(seconds)
        if len(pending) > _PENDING:
            self._count()

    def latency(self) -> tuple[int, Latency]:
        """Return the number of times, and their statistics."""
        self._count()
        with self._lock:
            cumulative, total_seconds = np.cumsum(self._counts), self._seconds
        total = int(cumulative[-1])
        if not total:
            return 0, Latency()
        shares = np.ceil(np.array([0.5, 0.9, 0.99, 1.0]) * total)
        at = [_ms(int(index)) for index in np.searchsorted(cumulative, shares)]
        return total, Latency(total_seconds / total * 1e3, *at)

    def _count(self) -> None:
        """Count the pending times."""
        with self._lock:
            pending = self._pending[:]
            del self._pending[: len(pending)]
            fractions, exponents = np.frexp(np.array(pending))
            fine = ((fractions - 0.5) * (2 * _FINE)).astype(np.int64)
            indices = (exponents - _LEAST) * _FINE + fine
            np.add.at(self._counts, np.clip(indices, 0, len(self._counts) - 1), 1)
            self._seconds += sum(pending)


@dataclass(frozen=True, slots=True)
class Latency:
    """Run times in milliseconds; percentiles are exact to 2 %; all are 0 without runs.

    Attributes:
        mean: the mean.
        p50: the median.
        p90: the 90th percentile.
        p99: the 99th percentile.
        most: the maximum.
    """

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    most: float = 0.0


def _ms(index: int) -> float:
    """Return the middle of a class in milliseconds."""
    exponent, fine = divmod(index, _FINE)
    return math.ldexp(0.5 + (fine + 0.5) / (2 * _FINE), exponent + _LEAST) * 1e3
