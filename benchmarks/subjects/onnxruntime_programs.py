"""Packages written for ONNX Runtime, unmodified, on crosschip.

Each package runs on a sample of its own (`benchmarks/programs`) in four processes that start at the
same time: on ONNX Runtime itself, and on crosschip's interface of ONNX Runtime with the devices
`onnxruntime`, `openvino` (where ONNX Runtime does what OpenVINO does not) and `auto`. All must
answer the same: equal text, labels and integers, numbers within the tolerances of the corpus, or
as near as ONNX Runtime's own answers for inputs that differ in their last digits. Then they run in
turn, in random order. Times are medians of the whole task, with all that the package does besides;
the ratios are medians over the turns, of ONNX Runtime's time to ours, and of the faster device's to
that of `auto`. Packages that are not installed are left out; `make programs`
and `make programs-large` install them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from inspect import getdoc
from typing import Annotated

from benchmarks.comparison import Estimate
from benchmarks.programs import names
from benchmarks.programs._process import DEVICES, MissingError, Program, differences
from benchmarks.subject import Column, Row

LIMIT = 0.97
REQUIREMENT = (
    f"the same answers, at least {LIMIT:g} of ONNX Runtime's speed on `onnxruntime`, and with "
    f"`auto` at least {LIMIT:g} of the faster device's"
)

_TURNS, _SECONDS = 15, 30.0
_PAUSE_SECONDS = 0.02
_SEED = 5


@dataclass(frozen=True)
class PackageRun(Row):
    """One package."""

    package: Annotated[str, Column("package")]
    task: Annotated[str, Column("what it does")]
    same: Annotated[str, Column("answers")]
    onnxruntime_ms: Annotated[float, Column("ONNX Runtime ms", ".1f")]
    times: Annotated[Mapping[str, float], Column("crosschip on {} ms", ".1f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    automatic: Annotated[Estimate, Column("faster / auto", ".3f")]

    @property
    def met(self) -> bool:
        within = (e.value + e.error >= LIMIT for e in (self.ratio, self.automatic))
        return self.same == "the same" and all(within)


def measure(*, quick: bool) -> Iterator[PackageRun]:
    """Each package."""
    for name in names():
        try:
            yield _measure(name, 2 if quick else _TURNS)
        except MissingError as error:
            print(f"{name} is left out: {error}", flush=True)


def _measure(name: str, turns: int) -> PackageRun:
    with ExitStack() as stack:
        programs = {d: stack.enter_context(Program.start(name, d)) for d in ("", *DEVICES)}
        different = [
            line
            for devices in DEVICES
            for line in differences(name, programs[devices].answer, programs[""].answer)
        ]
        for program in programs.values():
            program.run()
        times: dict[str, list[float]] = {devices: [] for devices in programs}
        order, end = random.Random(_SEED), time.perf_counter() + _SECONDS
        while len(times[""]) < turns and (len(times[""]) < 3 or time.perf_counter() < end):
            for devices in order.sample(list(programs), len(programs)):
                time.sleep(_PAUSE_SECONDS)  # until the threads of the one before have stopped
                times[devices].append(programs[devices].run())
    ours, openvino, automatic = (times[devices] for devices in DEVICES)
    return PackageRun(
        name,
        task(name),
        "; ".join(different) or "the same",
        statistics.median(times[""]),
        {devices.partition(",")[0]: statistics.median(times[devices]) for devices in DEVICES},
        Estimate.of([a / b for a, b in zip(times[""], ours, strict=True)]),
        Estimate.of([min(a, b) / c for a, b, c in zip(ours, openvino, automatic, strict=True)]),
    )


def task(name: str) -> str:
    """Return what a program does, in a line."""
    text = getdoc(import_module(f"benchmarks.programs.{name}")) or ""
    return text.partition("\n")[0].rstrip(".")
