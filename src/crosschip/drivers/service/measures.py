"""Statistics of a service's runs."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from time import monotonic

_MAX_RECENT = 2048
_RATE_SECONDS = 5.0
_PERCENTILES = (50, 90, 99)

BOUNDS = (*(step * 10.0**power for power in range(-5, 1) for step in (1, 2.5, 5)), 10.0)
"""The upper bounds of the histogram's buckets in seconds; one more bucket is unbounded."""


class Measures:
    """Statistics of a service; thread-safe.

    Attributes:
        runs: the number of ended runs.
        failures: how many of them failed.
        copied: how many outputs were copied to client memory.
    """

    def __init__(self) -> None:
        self.begin = monotonic()
        self.runs = 0
        self.failures = 0
        self.copied = 0
        self._seconds = 0.0
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MAX_RECENT)
        self._lock = threading.Lock()

    def add(self, started: float, *, failed: bool, copied: int) -> None:
        """Count a run that ends now.

        Args:
            started: when it was accepted, on the clock of `time.monotonic`.
            failed: whether it failed.
            copied: how many of its outputs were copied.
        """
        now = monotonic()
        seconds = now - started
        bucket = bisect_left(BOUNDS, seconds)
        with self._lock:
            self.runs += 1
            self.failures += failed
            self.copied += copied
            self._seconds += seconds
            self._buckets[bucket] += 1
            self._recent.append((now, seconds))

    def histogram(self) -> tuple[Sequence[int], float]:
        """Return the cumulative histogram of run durations.

        Returns:
            The number of runs up to each of `BOUNDS` and in total, and all runs' seconds together.
        """
        with self._lock:
            return list(accumulate(self._buckets)), self._seconds

    def rate(self) -> float:
        """Return recent runs per second."""
        now = monotonic()
        recent = list(self._recent)
        begin = max(now - _RATE_SECONDS, recent[0][0] if len(recent) == _MAX_RECENT else self.begin)
        return sum(end >= begin for end, _ in recent) / max(now - begin, 1e-3)

    def latency(self) -> Mapping[str, float]:
        """Return seconds from acceptance to end of recent runs, by percentile."""
        durations = sorted(seconds for _, seconds in list(self._recent))
        if not durations:
            return {}
        return {
            str(p): durations[min(len(durations) - 1, len(durations) * p // 100)]
            for p in _PERCENTILES
        }


def resident() -> int:
    """Return the process's resident memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
