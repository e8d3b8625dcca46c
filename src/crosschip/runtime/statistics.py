"""Figures about the runs of a compiled model: calls, times, programs, bytes."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

_FINE = 32
"""The classes between a time and twice that: it is told as exactly as 2 %."""

_LEAST, _MOST = -30, 20
"""The binary exponents of the seconds that are told apart: from a nanosecond to eleven days."""

PENDING = 512
"""The times after which they are counted."""


class Histogram:
    """Times in classes that grow with the time, in memory that does not.

    Attributes:
        pending: times in seconds that are not counted yet. Whoever measures one appends it, which
            takes no lock, and calls `count` once there are more than `PENDING`.
    """

    def __init__(self) -> None:
        self.pending: list[float] = []
        self._counts = np.zeros((_MOST - _LEAST) * _FINE, np.int64)
        self._seconds = 0.0
        self._lock = threading.Lock()

    def count(self) -> None:
        """Count the times that are pending."""
        with self._lock:
            taken = self.pending[:]
            del self.pending[: len(taken)]
            fractions, exponents = np.frexp(np.array(taken))
            fine = ((fractions - 0.5) * (2 * _FINE)).astype(np.int64)
            places = (exponents - _LEAST) * _FINE + fine
            np.add.at(self._counts, np.clip(places, 0, len(self._counts) - 1), 1)
            self._seconds += sum(taken)

    def latency(self) -> tuple[int, Latency]:
        """The number of times, and the figures about them."""
        self.count()
        with self._lock:
            seen, seconds = np.cumsum(self._counts), self._seconds
        total = int(seen[-1])
        if not total:
            return 0, Latency()
        shares = np.ceil(np.array([0.5, 0.9, 0.99, 1.0]) * total)
        at = [_ms(int(place)) for place in np.searchsorted(seen, shares)]
        return total, Latency(seconds / total * 1e3, *at)


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of runs in milliseconds, but for the mean as exact as 2 %; 0 where there was none.

    Attributes:
        mean: the mean.
        p50: the time within which half of the runs ended.
        p90: that of nine in ten.
        p99: that of 99 in a hundred.
        most: the longest.
    """

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    most: float = 0.0


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """Figures about a segment.

    Attributes:
        name: the segment's.
        device: who runs it.
        shapes: who compiles open sizes, and which are padded.
        runs: how often it ran.
        bytes_in: what the device was given, inputs and no weights.
        bytes_out: what it gave back.
        programs: how many compiled programs there are now.
        hits: runs and preparations that found their program.
        compiled: programs that were compiled.
        loaded: programs that came from the cache.
        evicted: programs that had to go for others.
        padded: runs that were padded to larger sizes.
    """

    name: str
    device: str
    shapes: str
    runs: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    programs: int = 1
    hits: int = 0
    compiled: int = 0
    loaded: int = 0
    evicted: int = 0
    padded: int = 0


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures about a compiled model since it was made.

    Attributes:
        calls: how many runs have ended well.
        latency: of the calls, without the time that requests wait in the queue.
        segments: those of the model, then those of bodies of control flow.
    """

    calls: int
    latency: Latency
    segments: Sequence[SegmentStatistics]

    def to_json(self) -> dict[str, Any]:
        """The figures as what JSON can say."""
        return asdict(self)

    def __str__(self) -> str:
        times = self.latency
        lines = [
            f"{self.calls} calls: median {times.p50:.3g} ms, 90 % {times.p90:.3g} ms, "
            f"99 % {times.p99:.3g} ms, longest {times.most:.3g} ms"
        ]
        rows = [_HEADINGS, *(_row(segment) for segment in self.segments)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                cell.ljust(width) if index in _TEXTS else cell.rjust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


_HEADINGS = (
    "segment",
    "device",
    "shapes",
    "runs",
    "in",
    "out",
    "programs",
    "hits",
    "compiled",
    "loaded",
    "evicted",
    "padded",
)
_TEXTS = (0, 1, 2)


def _row(segment: SegmentStatistics) -> tuple[str, ...]:
    counts = (
        segment.programs,
        segment.hits,
        segment.compiled,
        segment.loaded,
        segment.evicted,
        segment.padded,
    )
    return (
        segment.name,
        segment.device,
        segment.shapes,
        str(segment.runs),
        _bytes(segment.bytes_in),
        _bytes(segment.bytes_out),
        *map(str, counts),
    )


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.3g} {unit}" if unit != "B" else f"{count} B"
        size /= 1000
    raise AssertionError("the last unit always does")


def _ms(place: int) -> float:
    """The middle of a class, in milliseconds."""
    exponent, fine = divmod(place, _FINE)
    return math.ldexp(0.5 + (fine + 0.5) / (2 * _FINE), exponent + _LEAST) * 1e3
