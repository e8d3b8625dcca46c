"""`wait=False`: the first answer, and calls while a model moves to a faster device.

*The first answer*: processes start, import NumPy and crosschip, compile an ONNX file with an empty
cache and run it once: for each device alone, and for `"auto"` without waiting. The time is measured
outside, from the start of the process to its message that the answer exists; the processes run in
turn, and the minimum of several times counts. The ratio compares `"auto"` with the quicker device.

*The move*: eight threads call a model and rest between calls, so that calls do not queue for the
cores, whose waits would hide those for the move. The device that is ready first is ONNX Runtime,
delayed by ten times the time of a run and 10 ms; behind it the model is compiled for OpenVINO,
measured, and moves there. Answers are compared with ONNX Runtime's. A pause is how much longer the
longest call takes, from a quarter of a second before the move to a quarter after it, than usual:
than the 99th percentile of the calls on the same device, before and after. For comparison: the same
for all calls while OpenVINO is loaded and compiles, and for those in the steady state afterwards.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from benchmarks import fresh
from benchmarks.engines import engines
from benchmarks.fresh import seconds_to_answer
from benchmarks.models import model_file
from benchmarks.subject import Column, Row

RATIO_LIMIT, PAUSE_LIMIT_MS = 1.1, 5.0
REQUIREMENT = (
    f"the first answer takes at most {RATIO_LIMIT:g} times the time of the quicker device alone; "
    f"no call is wrong or lost, and no pause at the move is longer than {PAUSE_LIMIT_MS:g} ms"
)

_NETWORKS = ("PP-OCR cls", "MobileNetV3-small", "PP-OCRv4 rec")
_CALLS = 10_000
_AUTO = ""


@dataclass(frozen=True)
class EarlyAnswer(Row):
    """One network."""

    network: Annotated[str, Column("network")]
    alone: Annotated[Mapping[str, float], Column("first answer: {} alone, s", ".2f")]
    early: Annotated[float, Column("`auto` without waiting, s", ".2f")]
    ratio: Annotated[float, Column("ratio", ".2f")]
    calls: Annotated[int, Column("calls", ",")]
    wrong: Annotated[int, Column("wrong")]
    lost: Annotated[int, Column("lost")]
    moves: Annotated[int, Column("moves")]
    usual_ms: Annotated[Mapping[str, float], Column("usual call {}, ms", ".2f")]
    pause_ms: Annotated[float, Column("pause at the move, ms", ".2f")]
    before_ms: Annotated[float, Column("while compiling, ms", ".2f")]
    after_ms: Annotated[float, Column("afterwards, ms", ".2f")]

    @property
    def met(self) -> bool:
        sound = not self.wrong and not self.lost and self.moves == 1
        return sound and self.ratio <= RATIO_LIMIT and self.pause_ms <= PAUSE_LIMIT_MS


def measure(*, quick: bool) -> Iterator[EarlyAnswer]:
    """Three networks."""
    for network in _NETWORKS[:1] if quick else _NETWORKS:
        file = model_file(network, ".onnx")
        shapes = json.dumps(file.oracle(1).shapes)
        first = _first_answers(file.path, shapes, times=2 if quick else 9)
        early = first.pop(_AUTO)
        calls = fresh.run(
            "early_answer", "calls", file.path, _CALLS // (10 if quick else 1), shapes
        )
        yield EarlyAnswer(
            network,
            first,
            early,
            early / min(first.values()),
            calls["calls"],
            calls["wrong"],
            calls["lost"],
            len(calls["moves"]),
            {"before": calls["usual"][0] * 1e3, "after": calls["usual"][1] * 1e3},
            calls["pause"] * 1e3,
            calls["before"] * 1e3,
            calls["after"] * 1e3,
        )


def _first_answers(path: Path, shapes: str, times: int) -> dict[str, float]:
    """The least time to the first answer, by device; that of `"auto"` by an empty text."""
    seconds: dict[str, float] = {}
    for _ in range(times):
        for device in (*engines(), _AUTO):
            with TemporaryDirectory() as folder:
                least = seconds.get(device, math.inf)
                seconds[device] = min(_seconds(path, device, folder, shapes), least)
    return seconds


def _seconds(path: Path, device: str, folder: str, shapes: str) -> float:
    """The time from starting a process to its answer."""
    module = [sys.executable, "-m", "benchmarks.children.early_answer"]
    return seconds_to_answer([*module, "first", str(path), device, folder, shapes])
