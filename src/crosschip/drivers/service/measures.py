"""What a service counts of its runs."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from time import monotonic

_KEPT = 2048
_RATE_SECONDS = 5.0
_PERCENTILES = (50, 90, 99)

BOUNDS = (*(step * 10.0**power for power in range(-5, 1) for step in (1, 2.5, 5)), 10.0)
"""Seconds up to which the runs of each bucket take; there is one more for those beyond."""


class Measures:
    """Counters of a service, added to by any thread.

    Attributes:
        runs: how many have ended.
        failures: how many of these failed.
        copied: how many outputs were copied into memory of a client's.
    """

    def __init__(self) -> None:
        self.begin = monotonic()
        self.runs = 0
        self.failures = 0
        self.copied = 0
        self._seconds = 0.0
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._recent: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    def add(self, started: float, *, failed: bool, copied: int) -> None:
        """Count a run that has ended now.

        Args:
            started: when it was taken on, on the clock of `time.monotonic`.
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
        """How many runs took at most as long as each of `BOUNDS`, and last, how many there were.

        Returns:
            These numbers, and how many seconds all runs took together.
        """
        with self._lock:
            return list(accumulate(self._buckets)), self._seconds

    def rate(self) -> float:
        """Runs a second, of late."""
        now = monotonic()
        recent = list(self._recent)
        begin = max(now - _RATE_SECONDS, recent[0][0] if len(recent) == _KEPT else self.begin)
        return sum(end >= begin for end, _ in recent) / max(now - begin, 1e-3)

    def latency(self) -> Mapping[str, float]:
        """Seconds from taking on to the end, by percentile, of the runs of late."""
        durations = sorted(seconds for _, seconds in list(self._recent))
        if not durations:
            return {}
        return {
            str(p): durations[min(len(durations) - 1, len(durations) * p // 100)]
            for p in _PERCENTILES
        }


def resident() -> int:
    """Return the bytes of memory that this process takes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
