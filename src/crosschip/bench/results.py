"""Results of benchmarks: the times of competitors, and the error against each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from crosschip.accuracy.error import UNIT
from crosschip.bench.timing import Run, Timing, interleave
from crosschip.drawing.tables import Table, to_html, to_text
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.device_timing import typical_inputs

OURS = "crosschip"

_COLUMNS = ("engine", "median ms", "90 % ms", "best ms", "ratio to ours", "our error")


@dataclass(frozen=True, slots=True, repr=False)
class Benchmark:
    """The times of a model's runs, beside those of engines that run the same file.

    Attributes:
        model: the model or its file.
        runs: the number of timed runs of each competitor.
        threads: the threads of a run; `None` if they are left to the engines.
        timings: the times by competitor; `OURS` is crosschip.
        errors: the error of our outputs against those of each engine, in
            `crosschip.accuracy.error.UNIT`.
        not_finite: for each output with such elements, the number of `nan`, `infinite` and all
            `elements`.
    """

    model: str
    runs: int
    threads: int | None
    timings: Mapping[str, Timing]
    errors: Mapping[str, float] = field(default_factory=dict)
    not_finite: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def ratio(self, competitor: str) -> float:
        """Return how many times as long as ours a competitor's median run takes."""
        return self.timings[competitor].median_ms / self.timings[OURS].median_ms

    def document(self) -> dict[str, Any]:
        """Return all results as JSON values."""
        return {
            OURS: asdict(self.timings[OURS]),
            "error_unit": UNIT,
            "against": {
                engine: {
                    **asdict(self.timings[engine]),
                    "ratio": self.ratio(engine),
                    "error": error if math.isfinite(error) else None,
                }
                for engine, error in self.errors.items()
            },
            "model": self.model,
            "runs": self.runs,
            "threads": self.threads,
            "not_finite": {name: dict(counts) for name, counts in self.not_finite.items()},
        }

    def table(self) -> Table:
        """Return the times as a table."""
        rows = []
        for name, timing in self.timings.items():
            times = (timing.median_ms, timing.p90_ms, timing.best_ms, self.ratio(name))
            error = self.errors.get(name)
            rows.append((name, *(f"{value:.3f}" for value in times), _error_text(error)))
        count = len(_COLUMNS) if self.errors else len(_COLUMNS) - 1 if len(rows) > 1 else 4
        threads = f"{self.threads} threads" if self.threads else "threads left to the engines"
        return Table(
            f"{self.model}: {self.runs} runs each, {threads}",
            _COLUMNS[:count],
            [row[:count] for row in rows],
            _COLUMNS[1:],
        )

    def notes(self) -> Iterator[str]:
        """Yield sentences about errors, and about outputs with elements that are no numbers."""
        if self.errors:
            yield f"our error against the engine: {UNIT}"
        for name, counts in self.not_finite.items():
            listed = ", ".join(f"{counts[k]} {k}" for k in ("nan", "infinite") if counts[k])
            yield (
                f"output {name!r} has elements that are no numbers: {listed} of "
                f"{counts['elements']}; the time may not be representative"
            )

    def __str__(self) -> str:
        return to_text("Benchmark", [self.table()], self.notes())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return to_html("Benchmark", [self.table()], self.notes())


def benchmark(
    compiled: CompiledModel,
    inputs: Mapping[str, Any] | None = None,
    *,
    against: Mapping[str, CompiledModel | Run] | None = None,
    runs: int = 50,
) -> Benchmark:
    """Time a compiled model, in turns with others if there are any.

    Args:
        compiled: the compiled model.
        inputs: the inputs of all runs, as for `CompiledModel.run`; random if left out.
        against: other compiled models that take the same inputs, or functions to time, by name.
        runs: the number of timed runs of each.

    Raises:
        InputError: the inputs do not fit the model, or cannot be generated.
        DeviceError: a device failed.
    """
    if inputs is None:
        inputs = typical_inputs(compiled.placement.model, compiled.options.sizes)
    competitors = {OURS: compiled, **(against or {})}
    functions = {
        name: partial(each.run, inputs) if isinstance(each, CompiledModel) else each
        for name, each in competitors.items()
    }
    seconds = interleave(functions, runs)
    timings = {name: Timing.of(times) for name, times in seconds.items()}
    return Benchmark(compiled.name, runs, compiled.options.threads, timings)


def _error_text(error: float | None) -> str:
    if error is None:
        return ""
    return f"{error:.1e}" if math.isfinite(error) else "infinite"
