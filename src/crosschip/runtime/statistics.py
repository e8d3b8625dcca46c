"""Figures about the runs of a compiled model: calls, times, programs, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from crosschip.ir.dataclass import dataclass
from crosschip.runtime.histogram import Latency


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

    def since(self, before: SegmentStatistics) -> SegmentStatistics:
        """The figures without the runs that had been before; programs count whenever they came."""
        return replace(
            self,
            runs=self.runs - before.runs,
            bytes_in=self.bytes_in - before.bytes_in,
            bytes_out=self.bytes_out - before.bytes_out,
            hits=self.hits - before.hits,
            padded=self.padded - before.padded,
        )


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures about a compiled model since it was made; not about runs that `"auto"` measured.

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
