"""Peak memory of a process that runs ResNet50.

Each process is new, with batch 1 and three runs; the figure is its maximum resident memory. The
engine called directly reads the file itself (ONNX Runtime the `.onnx`, OpenVINO the `.pdmodel`),
without importing crosschip; crosschip reads the `.pdmodel`. With a cache, the first process also
writes the entry and the second reads it. *Only imported* is the engine with NumPy and without a
model, the minimum for both.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from benchmarks import fresh
from benchmarks.engines import engines
from benchmarks.models import model_file
from benchmarks.subject import Column, Row

LIMIT = 1.25
REQUIREMENT = f"at most {LIMIT:g} times the peak of a process that calls the engine directly"

_MEGABYTE = 2**20


@dataclass(frozen=True)
class Memory(Row):
    """One way to run the model."""

    device: Annotated[str, Column("device")]
    process: Annotated[str, Column("process")]
    megabytes: Annotated[float, Column("peak MiB", ".0f")]
    ratio: Annotated[float | None, Column("of the engine's", ".2f")]

    @property
    def met(self) -> bool | None:
        return None if self.ratio is None else self.ratio <= LIMIT


def measure(*, quick: bool) -> Iterator[Memory]:
    """Every way to run ResNet50 on every device with an engine."""
    file = model_file("ResNet50", ".pdmodel")
    shapes = json.dumps(file.oracle(1).shapes)
    times = 1 if quick else 5
    for device in engines():
        floor = _peak(times, "run_engine", device)
        direct = _peak(times, "run_engine", device, file.directly[device], shapes)
        yield Memory(device, "the engine, only imported", floor, None)
        yield Memory(device, "the engine directly", direct, None)
        ours = "run_model", file.path, device
        off = _peak(times, *ours, "off", shapes)
        yield Memory(device, "crosschip, no cache", off, off / direct)
        firsts, seconds = [], []
        for _ in range(times):
            with TemporaryDirectory() as folder:
                firsts.append(_peak(1, *ours, Path(folder), shapes))
                seconds.append(_peak(1, *ours, Path(folder), shapes))
        for words, peaks in (("filling the cache", firsts), ("from the cache", seconds)):
            peak = statistics.median(peaks)
            yield Memory(device, f"crosschip, {words}", peak, peak / direct)


def _peak(times: int, *call: Any) -> float:
    """The median peak of some processes, in MiB."""
    peaks: list[int] = [fresh.run(*call)["peak_bytes"] for _ in range(times)]
    return statistics.median(peaks) / _MEGABYTE
