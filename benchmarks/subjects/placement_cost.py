"""Placement by measured costs, against the best device alone.

The models are those of the corpus that take at least a millisecond. Each is compiled for every
device alone, and with `placement="measured"` for all of them, without any cache. Then all run in
turns, in random order; a turn begins when the threads of the one before have stopped. The gain is
the time of the best device divided by that of the placement, so about 1 where no mixture was
chosen. The prediction is that of the chosen placement, divided by its time. The order is right if
the devices' predicted times, from costs of blocks, come in the order of their measured times, or
these differ by less than 10 %.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import exp, log
from pathlib import Path
from random import Random
from typing import Annotated

from corpus.__main__ import entries
from corpus.entry import Entry

import crosschip
from benchmarks.comparison import Estimate
from benchmarks.engines import engines
from benchmarks.neighbours import Watch
from benchmarks.subject import Column, Row
from crosschip.bench.timing import Run
from crosschip.hal import Sizes
from crosschip.runtime.device_timing import typical_inputs, wait_for_idle
from crosschip.runtime.inputs import random_inputs

LEAST_RATIO, LEAST_MEAN, LARGEST_ERROR = 0.98, 1.02, 0.10
REQUIREMENT = (
    f"never below {LEAST_RATIO:g} of the best device; the geometric mean at least {LEAST_MEAN:g}; "
    f"the median error of predictions at most {LARGEST_ERROR:.0%}; 95 of 100 orders right"
)

_LEAST_MILLISECONDS = 1.0
_SEED = 29
_BLOCKS, _BLOCK_SECONDS = 7, 0.4
_QUICK_MODELS, _QUICK_BLOCKS = 16, 3
"""The number of packaged models of a quick run, approximately, each of another family."""


@dataclass(frozen=True)
class PlacedModel(Row):
    """One model."""

    model: Annotated[str, Column("model")]
    times: Annotated[Mapping[str, float | None], Column("{} ms", ".3f")]
    placement: Annotated[str, Column("placement")]
    placement_ms: Annotated[float, Column("placement ms", ".3f")]
    gain: Annotated[Estimate, Column("best / placement", ".3f")]
    predicted: Annotated[float | None, Column("predicted / measured", ".2f")]
    ordered: Annotated[bool | None, Column("order")]
    seconds: Annotated[float, Column("compile s", ".1f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.gain.value + self.gain.error >= LEAST_RATIO


def measure(*, quick: bool) -> Iterator[PlacedModel]:
    """Each model that takes long enough; then what all show is printed."""
    rows = []
    for entry in _entries(quick=quick):
        try:
            row = _measure(entry.name, entry.file, _QUICK_BLOCKS if quick else _BLOCKS)
        except crosschip.Error as error:
            print(f"{entry.name} is left out: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        if row is not None:
            rows.append(row)
            yield row
    if rows:
        print(summary(rows), flush=True)


def summary(rows: list[PlacedModel]) -> str:
    """Return the figures of the requirement, and the models that mixing makes faster by 10 %."""
    mean = exp(statistics.fmean(log(row.gain.value) for row in rows))
    errors = [abs(row.predicted - 1) for row in rows if row.predicted is not None]
    ordered = [row.ordered for row in rows if row.ordered is not None]
    won = [f"{row.model} {row.gain.value:.2f}" for row in rows if row.gain.value >= 1.1]
    return (
        f"{len(rows)} models: worst {min(row.gain.value for row in rows):.3f}, geometric mean "
        f"{mean:.3f}; median error of predictions {statistics.median(errors or [0.0]):.1%}; "
        f"order right for {sum(ordered)} of {len(ordered)}; "
        f"faster by 10 % or more: {', '.join(won) or 'none'}"
    )


def _entries(*, quick: bool) -> list[Entry]:
    present = [entry for entry in entries() if entry.file.exists()]
    if not quick:
        return present
    by_family = {entry.family: entry for entry in present if "packages" in entry.file.parts}
    chosen = list(by_family.values())
    return chosen[:: max(1, len(chosen) // _QUICK_MODELS)]


def _measure(name: str, path: Path, blocks: int) -> PlacedModel | None:
    """Measure a model; return `None` if it runs in less than a millisecond."""
    devices = [*engines(), "xla"]
    if _is_short(path, devices[0]):
        return None
    with ExitStack() as stack:
        placed = crosschip.compile(path, devices, placement="measured", cache=False)
        stack.enter_context(placed)
        choice = placed.placement.choice
        assert choice is not None, "several devices are there"
        best = choice.trials[0]
        if best.milliseconds is not None and best.milliseconds < _LEAST_MILLISECONDS:
            return None
        runs: dict[str, Run] = {}
        inputs = random_inputs(crosschip.load(path), choice.shapes)
        for trial in choice.trials:
            if trial.milliseconds is not None:
                alone = crosschip.compile(path, [trial.device], cache=False)
                runs[trial.device] = partial(stack.enter_context(alone).run, inputs)
        if not runs:  # no device runs the whole model
            ordered = crosschip.compile(path, choice.order, cache=False)
            runs["in order"] = partial(stack.enter_context(ordered).run, inputs)
        watch = Watch()
        all_runs: dict[str, Run] = {**runs, "placement": partial(placed.run, inputs)}
        slowest = max(trial.milliseconds or 1.0 for trial in choice.trials) / 1e3
        count = max(3, int(_BLOCK_SECONDS / slowest / len(all_runs)))
        order = Random(_SEED)
        medians = [
            {
                name: _turn(all_runs[name], count)
                for name in order.sample([*all_runs], len(all_runs))
            }
            for _ in range(blocks)
        ]
        gains = [min(each[n] for n in runs) / each["placement"] for each in medians]
        total = {n: statistics.median(each[n] for each in medians) for n in all_runs}
        costs = choice.costs
        used = dict.fromkeys(segment.device for segment in placed.placement.segments)
        seconds = placed.report.milliseconds / 1e3
        return PlacedModel(
            name,
            {device: total[device] * 1e3 if device in total else None for device in devices},
            " + ".join(used),
            total["placement"] * 1e3,
            Estimate.of(gains),
            costs.predicted_seconds / total["placement"] if costs else None,
            _is_ordered(costs.alone if costs else {}, total),
            seconds,
            watch.share(),
        )


def _is_short(path: Path, device: str) -> bool:
    """Return whether a device runs the whole model in less than a millisecond."""
    model = crosschip.load(path)
    try:
        inputs = typical_inputs(model, Sizes())
        with crosschip.compile(model, [device], cache=False) as compiled:
            return _turn(partial(compiled.run, inputs), 5) * 1e3 < _LEAST_MILLISECONDS
    except crosschip.Error:
        return False


def _turn(run: Run, count: int) -> float:
    """Return the median of some runs in seconds, after one that does not count."""
    wait_for_idle()
    run()
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _is_ordered(predicted: Mapping[str, float], measured: Mapping[str, float]) -> bool | None:
    """Return whether devices come in the order of their predicted times; `None` for one."""
    pairs = list(combinations([name for name in predicted if name in measured], 2))
    if not pairs:
        return None
    return all(
        (predicted[a] < predicted[b]) == (measured[a] < measured[b])
        or max(measured[a], measured[b]) < 1.1 * min(measured[a], measured[b])
        for a, b in pairs
    )
