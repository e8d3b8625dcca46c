"""`"auto"` against each device in the box.

Twenty models, batch 1, float32 unless they are quantized: networks for vision and for reading text,
transformers and others that are written with random weights, networks in eight bits (QDQ). Each is
compiled for `"auto"` with an empty cache, then for each device that runs all of it; these take
turns. The ratio is the time of the fastest over that of the one that `"auto"` has chosen, so 1 if
it is the same. Then another process compiles the same for `"auto"`: it must choose the same, and
measure nothing.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import crosschip
from benchmarks import fresh
from benchmarks.neighbours import Watch
from benchmarks.subject import Column, Row
from benchmarks.zoo import Zooling, zoo
from crosschip.bench.timing import interleave

LIMIT = 0.97
REQUIREMENT = (
    f"the chosen device has at least {LIMIT:g} of the speed of the fastest; a second process "
    "measures nothing"
)

_RUNS, _SECONDS = 40, 4.0


@dataclass(frozen=True)
class Automatic(Row):
    """One model."""

    model: Annotated[str, Column("model")]
    kind: Annotated[str, Column("kind")]
    times: Annotated[Mapping[str, float | None], Column("{} ms", ".3f")]
    chosen: Annotated[str, Column("chosen")]
    ratio: Annotated[float, Column("fastest / chosen", ".3f")]
    again: Annotated[int, Column("measured again")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.ratio >= LIMIT and not self.again


def measure(*, quick: bool) -> Iterator[Automatic]:
    """Each model, on each device that `"auto"` may choose."""
    with TemporaryDirectory() as folder:
        for zooling in zoo(Path(folder)):
            if quick and zooling.kind != "made":
                continue
            with TemporaryDirectory() as cache:
                yield _measure(zooling, Path(cache), quick=quick)


def _measure(zooling: Zooling, cache: Path, *, quick: bool) -> Automatic:
    shapes = {name: array.shape for name, array in zooling.inputs.items()}
    compiled = crosschip.compile(zooling.path, shapes=shapes, cache=cache)
    choice = compiled.placement.choice
    assert choice is not None, "nobody named devices"
    whole = [trial.device for trial in choice.trials if trial.milliseconds is not None]
    chosen = choice.order[0]
    models = {chosen: compiled} | {
        name: crosschip.compile(zooling.path, [name], shapes=shapes, cache=cache)
        for name in whole
        if name != chosen
    }
    runs = {name: partial(model.run, zooling.inputs) for name, model in models.items()}
    slowest = max((t.milliseconds or 0 for t in choice.trials), default=0) / 1e3
    count = max(5, min(_RUNS, int((_SECONDS / 10 if quick else _SECONDS) / max(slowest, 1e-4))))
    watch = Watch()
    times = {n: statistics.median(t) * 1e3 for n, t in interleave(runs, count).items()}
    others = watch.share()
    for model in models.values():
        model.close()
    second = fresh.run("automatic", zooling.path, json.dumps(shapes), cache)
    again = second["measured"] + (second["order"] != choice.order)
    names = [d.name for d in crosschip.list_devices() if d.available and not d.simulated]
    shown = {name: times.get(name) for name in names if name != "reference"}
    ratio = min(times.values()) / times[chosen]
    return Automatic(zooling.name, zooling.kind, shown, chosen, ratio, again, others)
