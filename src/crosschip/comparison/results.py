"""Results of comparisons: the time and the error of each competitor."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any

from crosschip.accuracy.error import UNIT
from crosschip.bench.timing import Timing
from crosschip.drawing.tables import Table, to_html, to_text
from crosschip.ir.text import legible

_COLUMNS = (
    *("", "median ms", "quartiles ms", "times as fast", "error", "largest difference"),
    "runs on",
)
_LONGEST_REASON = 160
"""The maximum number of characters of a reason in one line."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The time and the error of a competitor, or the reason why it did not run.

    Attributes:
        name: the name of the engine, or of crosschip's devices.
        engine: whether it is an engine that reads the file itself, without crosschip.
        devices: the devices that run the operations; empty for an engine.
        timing: the times; `None` if it did not run.
        error: the error of its outputs, in `crosschip.accuracy.error.UNIT`; `None` if it did not
            run, or there is nothing to compare with.
        largest_difference: the largest absolute difference of an element from the exact one.
        reason: why it did not run; empty if it did.
    """

    name: str
    engine: bool
    devices: tuple[str, ...] = ()
    timing: Timing | None = None
    error: float | None = None
    largest_difference: float | None = None
    reason: str = ""

    @property
    def label(self) -> str:
        """The name, with crosschip before the names of devices."""
        return self.name if self.engine else f"crosschip {self.name}"

    @property
    def short_reason(self) -> str:
        """The first reason in one line."""
        head, *details = [line.strip() for line in self.reason.splitlines()] or [""]
        detail = details[0] if details else head
        text = detail.partition(f"{self.name}: ")[2] or detail
        return shorten(legible(text), _LONGEST_REASON, placeholder=" …")


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The times and errors of engines and of crosschip on the same model and inputs.

    Attributes:
        model: the name of the model or its file.
        measurements: one for each competitor: those that ran, the fastest first, then the others.
        exact: what computed the outputs that count as exact; empty if there are none.
        inputs: the shapes of the inputs, by name.
        runs: the number of timed runs of each competitor.
        threads: the maximum number of threads of a run; `None` if it is left to the engines.
        precision: the arithmetic of crosschip's devices; engines compute in float32.
        machine: the processor and the versions, by name.
    """

    model: str
    measurements: tuple[Measurement, ...]
    exact: str
    inputs: Mapping[str, tuple[int, ...]]
    runs: int
    threads: int | None = None
    precision: str = "float32"
    machine: Mapping[str, str] = field(default_factory=dict)

    @property
    def baseline(self) -> Measurement | None:
        """The fastest engine; without engines the fastest competitor, `None` if none ran."""
        ran = self.timed
        return next((each for each in ran if each.engine), ran[0] if ran else None)

    @property
    def timed(self) -> list[Measurement]:
        """The competitors that ran, the fastest first."""
        return [each for each in self.measurements if each.timing is not None]

    @property
    def failed(self) -> list[Measurement]:
        """The competitors that did not run."""
        return [each for each in self.measurements if each.timing is None]

    def speed(self, measurement: Measurement) -> float | None:
        """Return how many times as fast as `baseline` a competitor is; `None` if it did not run."""
        baseline = self.baseline
        if measurement.timing is None or baseline is None or baseline.timing is None:
            return None
        return baseline.timing.median_ms / measurement.timing.median_ms

    def to_json(self) -> dict[str, Any]:
        """Return all results as JSON values."""
        return {
            "model": self.model,
            "inputs": {name: list(shape) for name, shape in self.inputs.items()},
            "runs": self.runs,
            "threads": self.threads,
            "precision": self.precision,
            "machine": dict(self.machine),
            "baseline": self.baseline.label if self.baseline else None,
            "exact": self.exact,
            "error_unit": UNIT,
            "measurements": [self._fields(each) for each in self.measurements],
        }

    def _fields(self, measurement: Measurement) -> dict[str, Any]:
        timing = measurement.timing
        return {
            "name": measurement.name,
            "engine": measurement.engine,
            "devices": list(measurement.devices),
            **(asdict(timing) if timing else {}),
            "times_as_fast": self.speed(measurement),
            "error": _finite(measurement.error),
            "largest_difference": _finite(measurement.largest_difference),
            "reason": measurement.reason,
        }

    def to_svg(self, title: str = "") -> str:
        """Return a picture: a bar for the time of each competitor, with its spread and error.

        Args:
            title: the title; the name of the model if empty.
        """
        # Imported late: most comparisons are not drawn.
        from crosschip.comparison.picture import picture

        return picture(self, title)

    def save(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write the picture to an `.svg` or `.png` file; PNG has twice the size in pixels.

        Args:
            path: the file.
            title: the title; the name of the model if empty.

        Raises:
            InputError: the file has another suffix or cannot be written, or it is `.png` and Pillow
                is not installed.
        """
        from crosschip.comparison.picture import write_picture

        write_picture(Path(path), self.to_svg(title))

    def table(self) -> Table:
        """Return the times and errors as a table."""
        rows = [self._row(each) for each in self.measurements]
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in self.inputs.items())
        return Table(f"{self.model}: {shapes}", _COLUMNS, rows, _COLUMNS[1:-1])

    def _row(self, measurement: Measurement) -> tuple[str, ...]:
        timing, speed = measurement.timing, self.speed(measurement)
        if timing is None or speed is None:
            reason = f"did not run: {measurement.short_reason}"
            return (measurement.label, *[""] * (len(_COLUMNS) - 2), reason)
        return (
            measurement.label,
            f"{timing.median_ms:.3f}",
            f"{timing.p25_ms:.3f} – {timing.p75_ms:.3f}",
            f"{speed:.2f}",
            error_text(measurement.error),
            error_text(measurement.largest_difference),
            ", ".join(measurement.devices) or "the engine itself",
        )

    def notes(self) -> Iterator[str]:
        """Yield sentences: how it was measured, and what the columns mean."""
        threads = f"{self.threads} threads" if self.threads else "threads left to the engines"
        arithmetic = "" if self.precision == "float32" else f", crosschip in {self.precision}"
        yield f"{self.runs} runs each, in turns; {threads}{arithmetic}"
        if self.baseline:
            yield f"times as fast: as {self.baseline.label}"
        if self.exact:
            yield f"error against {self.exact}: {UNIT}; 0 if rounding explains the difference"
        if self.machine:
            yield ", ".join(f"{name} {text}".strip() for name, text in self.machine.items())

    def __str__(self) -> str:
        return to_text("Comparison", [self.table()], self.notes())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return to_html("Comparison", [self.table()], self.notes())


def error_text(error: float | None) -> str:
    """Return an error as a short text; empty if it is unknown."""
    if error is None:
        return ""
    if not math.isfinite(error):
        return "infinite"
    return f"{error:.1e}" if error else "0"


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
