"""Statistics of a compiled model's runs: calls, times, programs, bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from crosschip.ir.dataclass import dataclass
from crosschip.runtime.histogram import Latency


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """Statistics of a segment.

    Attributes:
        name: the name of the segment.
        device: the name of its device.
        shapes: how dynamic sizes are compiled, and which are padded.
        runs: the number of runs.
        bytes_in: the bytes of its inputs, without weights.
        bytes_out: the bytes of its outputs.
        programs: the number of compiled programs at present.
        hits: runs and preparations for which there was a program.
        compiled: the number of programs that were compiled.
        loaded: the number of programs that came from the cache.
        evicted: the number of programs that were replaced by others.
        padded: the number of runs that were padded to larger sizes.
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
        """Subtract earlier statistics; the number of programs stays the present one."""
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
    """Statistics of a compiled model, without the runs by which `"auto"` measured it.

    Attributes:
        calls: the number of successful runs.
        latency: the time of the runs, without waiting in the queue.
        segments: the statistics of the model's segments, then of those of bodies of control flow.
    """

    calls: int
    latency: Latency
    segments: Sequence[SegmentStatistics]

    def to_json(self) -> dict[str, Any]:
        """Return the statistics as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        # Imported late, as below: most statistics are only counted.
        from crosschip.drawing import columns

        rows = list(map(_row, self.segments))
        return f"{self._heading}\n{columns(_HEADINGS, rows, _HEADINGS[3:])}"

    def _repr_html_(self) -> str:
        from crosschip.drawing.tables import Table, to_html

        rows = list(map(_row, self.segments))
        return to_html(self._heading, [Table("Segments", _HEADINGS, rows, _HEADINGS[3:])])

    @property
    def _heading(self) -> str:
        times = self.latency
        return (
            f"{self.calls} calls: median {times.p50:.3g} ms, 90 % {times.p90:.3g} ms, "
            f"99 % {times.p99:.3g} ms, longest {times.most:.3g} ms"
        )


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
