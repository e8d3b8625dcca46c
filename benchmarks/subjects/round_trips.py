"""Round trips: ONNX models that are exported, and run from what is written.

The models are the ONNX files of the corpus. Each is exported as TensorFlow
Lite, which crosschip reads again and runs on ONNX Runtime's device and on `reference`, and as TOSA,
which Arm's reference model runs. The answers are compared with those of ONNX Runtime for the
original file, within the tolerances of the corpus. `reference` computes with NumPy, and the
reference model one number at a time, so a trip that takes too long has no answer. Each trip is a
process. A benchmark that was ended early goes on where it was.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from corpus.__main__ import entries
from corpus.entry import FOLDER, Entry

from benchmarks import fresh
from benchmarks.subject import Column, Row

REQUIREMENT = "what is written gives the answers of the original file"

_FORMATS = ("tflite", "tosa")
_MAX_BYTES = 100 * 2**20
_LIMIT_SECONDS = 180
_QUICK = ("akiki-vad", "wakeword-alexa")
_TRIPS = FOLDER / "round-trips"
"""The rows of a benchmark that has not ended."""


@dataclass(frozen=True)
class RoundTrip(Row):
    """One model in one format."""

    model: Annotated[str, Column("model")]
    format: Annotated[str, Column("format")]
    seconds: Annotated[float, Column("seconds", ".1f")]
    operations: Annotated[int | None, Column("operations")] = None
    error: Annotated[float | None, Column("error", ".1e")] = None
    allowed: Annotated[float | None, Column("allowed", ".1e")] = None
    note: Annotated[str, Column("note")] = ""

    @property
    def met(self) -> bool | None:
        if self.error is None or self.allowed is None:
            return None
        return self.error <= self.allowed


def measure(*, quick: bool) -> Iterator[RoundTrip]:
    """Each model of the corpus in both formats, the smallest files first."""
    chosen = [
        entry
        for entry in entries()
        if entry.file.suffix == ".onnx"
        and entry.file.exists()
        and entry.file.stat().st_size <= _MAX_BYTES
        and (not quick or entry.name in _QUICK)
    ]
    _TRIPS.mkdir(exist_ok=True)
    for entry in sorted(chosen, key=lambda entry: entry.file.stat().st_size):
        for format in _FORMATS:
            path = _TRIPS / f"{entry.name}.{format}.json"
            if not path.exists():
                path.write_text(json.dumps(asdict(_measure(entry, format))), encoding="utf-8")
            yield RoundTrip(**json.loads(path.read_text(encoding="utf-8")))
    shutil.rmtree(_TRIPS)


def _measure(entry: Entry, format: str) -> RoundTrip:
    start = time.perf_counter()
    try:
        figures: dict[str, Any] = fresh.run(
            "round_trip", entry.name, format, seconds=_LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        figures = {"note": f"not done within {_LIMIT_SECONDS} s"}
    except subprocess.CalledProcessError as error:
        figures = {"note": f"ended with {error.returncode}"}
    return RoundTrip(entry.name, format, time.perf_counter() - start, **figures)
