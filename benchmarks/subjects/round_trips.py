"""Round trips: ONNX models that are exported, and run from what is written.

The models are the ONNX files of the corpus. Each is exported as TensorFlow
Lite, which crosschip reads again and runs on ONNX Runtime's device and on `reference`, and as TOSA,
which Arm's reference model runs. The answers are compared with those of ONNX Runtime for the
original file, within the tolerances of the corpus. The reference model computes one number at a
time, so models of more multiply-adds are left out there.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from corpus.__main__ import entries
from corpus.entry import Entry
from corpus.expected import ask, path_of, read
from corpus.judging import difference
from corpus.reading import inputs_of

import crosschip
from benchmarks.subject import Column, Row
from crosschip.exporters import export, exporters
from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Array, Error, Model
from crosschip.passes.specialize import Specialize

REQUIREMENT = "what is written gives the answers of the original file"

_MAX_BYTES = 100 * 2**20
_MAX_MULTIPLY_ADDS = 3e8
_QUICK = ("akiki-vad", "wakeword-alexa")
_DEVICES = (["reference"], ["onnxruntime", "reference"])


@dataclass(frozen=True)
class RoundTrip(Row):
    """One model in one format."""

    model: Annotated[str, Column("model")]
    format: Annotated[str, Column("format")]
    operations: Annotated[int | None, Column("operations")]
    error: Annotated[float | None, Column("error", ".1e")]
    allowed: Annotated[float | None, Column("allowed", ".1e")]
    seconds: Annotated[float, Column("seconds", ".1f")]
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
    for entry in sorted(chosen, key=lambda entry: entry.file.stat().st_size):
        yield _measure(entry, "tflite", _run_tflite)
        yield _measure(entry, "tosa", _run_tosa)


Run = Callable[[Path, Model, Mapping[str, Array]], Iterator[Sequence[Array]]]
"""Yields the answers to inputs that a file gives in each way to run it."""


def _measure(entry: Entry, format: str, run: Run) -> RoundTrip:
    start = time.perf_counter()
    operations = error = allowed = None
    note = ""
    try:
        inputs = inputs_of(entry)
        shapes = {name: array.shape for name, array in inputs.items()}
        model = Specialize(shapes)(crosschip.load(entry.file))
        if format == "tosa" and sum(map(multiply_adds, model.operations)) > _MAX_MULTIPLY_ADDS:
            return RoundTrip(entry.name, format, None, None, None, 0.0, "too large")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"model.{format}")
            operations = export(model, path, verification=False).operations
            answers = list(run(path, model, {name: inputs[name] for name in model.inputs}))
        expected = read(entry) if path_of(entry).exists() else ask(entry)
        pairs = [
            (largest, limit)
            for answer in answers
            for largest, limit in zip(
                difference(answer, expected.arrays), expected.allowed(entry), strict=True
            )
        ]
        error, allowed = max(pairs, key=lambda pair: pair[0] - pair[1])
    except (Error, ValueError) as problem:
        note = str(problem).splitlines()[0][:300]
    return RoundTrip(
        entry.name, format, operations, error, allowed, time.perf_counter() - start, note
    )


def _run_tflite(path: Path, model: Model, inputs: Mapping[str, Array]) -> Iterator[Sequence[Array]]:
    exported = crosschip.load(path)
    for devices in _DEVICES:
        with crosschip.compile(exported, devices, cache=False) as compiled:
            yield list(compiled.run(inputs).values())


def _run_tosa(path: Path, model: Model, inputs: Mapping[str, Array]) -> Iterator[Sequence[Array]]:
    yield exporters()["tosa"].run(path.read_bytes(), model, list(inputs.values()))
