"""Exported models: the same answers, and their speed against the original.

`.onnx` files are exported as ONNX and run by ONNX Runtime, `.tflite` files (those of the corpus) as
TensorFlow Lite and run by LiteRT, each beside the original on the same engine with one thread for
each core. The runs alternate as in the benchmark of latency. Those of LiteRT are timed without the
copies of inputs and outputs, because the variables of an original are inputs and outputs of the
exported model. Each `.onnx` file is also exported as
TensorFlow Lite, read again, and run by crosschip on ONNX Runtime. The error is that of the exported
model's outputs against the original on `reference`, as the Euclidean norm of the difference,
relative to that of the exact output.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx

import crosschip
from benchmarks.comparison import Estimate, compare
from benchmarks.engines import run_of_engine
from benchmarks.models import FOLDER, ROOT
from benchmarks.subject import Column, Row
from crosschip.bench.agreement import ErrorMeasure
from crosschip.bench.timing import Run
from crosschip.exporters import export
from crosschip.hal import Sizes
from crosschip.ir import Array, Error, Model, UnsupportedError
from crosschip.passes.specialize import Specialize
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.shapes.shape_search import ShapeSearch

LIMIT = 0.97
REQUIREMENT = (
    f"the median time of the original is at least {LIMIT:g} times that of the exported model on "
    "the same engine, and the answers are the same"
)
CORPUS = ROOT / "build" / "corpus" / "packages"
_MAX_BYTES = 40 * 2**20
_MAX_ERROR = 1e-3


@dataclass(frozen=True)
class Exported(Row):
    """One model in one format."""

    model: Annotated[str, Column("model")]
    way: Annotated[str, Column("from, to")]
    engine: Annotated[str, Column("run by")]
    original_ms: Annotated[float | None, Column("original ms", ".3f")]
    exported_ms: Annotated[float | None, Column("exported ms", ".3f")]
    ratio: Annotated[Estimate | None, Column("ratio", ".3f")]
    error: Annotated[float | None, Column("error", ".1e")]
    note: Annotated[str, Column("note")] = ""

    @property
    def met(self) -> bool | None:
        if self.note and self.error is None:
            return None
        fast = self.ratio is None or self.ratio.value >= LIMIT
        return fast and (self.error is None or self.error <= _MAX_ERROR)


def measure(*, quick: bool) -> Iterator[Exported]:
    """Each model file that is not too large in each format that it can be compared in."""
    onnx_files, lite_files = files_in(FOLDER, ".onnx"), files_in(CORPUS, ".tflite")
    onnx_files += files_in(CORPUS, ".onnx")
    for path in onnx_files[: 1 if quick else None]:
        yield from _measure(path, quick, "onnx", "onnxruntime")
        yield from _round_trip(path)
    for path in lite_files[: 1 if quick else None]:
        yield from _measure(path, quick, "tflite", "litert")


def files_in(folder: Path, suffix: str) -> list[Path]:
    files = sorted(folder.rglob(f"*{suffix}")) if folder.is_dir() else []
    return [path for path in files if path.stat().st_size < _MAX_BYTES]


def _measure(path: Path, quick: bool, format: str, engine: str) -> Iterator[Exported]:
    """Time a file and what is exported from it, on the engine of their format."""
    name, way = _name(path), f"{format}, {format}"
    try:
        model, inputs = load_fixed(path)
        with tempfile.TemporaryDirectory() as folder:
            exported = Path(folder, f"model.{format}")
            settings = _settings(path) if format == "onnx" else {}
            checked = export(model, exported, format, properties=settings).verification
            threads = os.cpu_count() or 1
            run = _invocation_of_litert if engine == "litert" else _run_of_onnxruntime
            result = compare(
                partial(run, exported, inputs, threads),
                partial(run, path, inputs, threads),
                seconds=0.2 if quick else 0.5,
                blocks=2 if quick else 4,
                error=0.005,
                patience=0 if quick else 6.0,
            )
    except (Error, RuntimeError, ValueError) as error:
        yield Exported(name, way, engine, None, None, None, None, _first_line(error))
        return
    error_value = checked.error if checked is not None else None
    figures = (result.direct_ms, result.ours_ms, result.ratio, error_value)
    yield Exported(name, way, engine, *figures)


def _settings(path: Path) -> dict[str, str]:
    """Return the settings to export an ONNX file with the operators of the same domains."""
    domain = "com.microsoft"
    proto = onnx.load(path, load_external_data=False)
    contributed = any(node.domain == domain for node in proto.graph.node)
    return {"domain": domain} if contributed else {}


def _round_trip(path: Path) -> Iterator[Exported]:
    """Export an ONNX file as TensorFlow Lite, and run what is read from that."""
    name, way = _name(path), "onnx, tflite, crosschip"
    try:
        model, inputs = load_fixed(path)
        with tempfile.TemporaryDirectory() as folder:
            exported = Path(folder, "model.tflite")
            export(model, exported, verification=False)
            outputs = _outputs(crosschip.load(exported), "onnxruntime", inputs)
        right = _outputs(model, "reference", inputs)
        measure_error = ErrorMeasure(
            model, inputs, lambda other: _outputs(other, "reference", inputs)
        ).error
        error = measure_error(dict(zip(right, outputs.values(), strict=True)), right)
    except UnsupportedError as error_:
        yield Exported(name, way, "onnxruntime", None, None, None, None, _first_line(error_))
        return
    yield Exported(name, way, "onnxruntime", None, None, None, error)


def _name(path: Path) -> str:
    return path.stem if path.stem != "model" else path.parent.name


def load_fixed(path: Path) -> tuple[Model, dict[str, Array]]:
    """Return the model in a file with fixed sizes, and random inputs."""
    model = crosschip.load(path)
    inputs = random_inputs(model, ShapeSearch(model, Sizes()).first())
    return Specialize({name: array.shape for name, array in inputs.items()})(model), inputs


def _outputs(model: Model, device: str, inputs: Mapping[str, Array]) -> dict[str, Any]:
    devices = dict.fromkeys((device, "reference"))
    with crosschip.compile(model, list(devices), cache=False) as compiled:
        arrays = dict(zip(model.inputs, inputs.values(), strict=True))
        return dict(compiled.run(arrays))


def _run_of_onnxruntime(path: Path, inputs: Mapping[str, Array], threads: int) -> Run:
    return run_of_engine(path, "onnxruntime", inputs, threads)


def run_of_litert(path: Path, inputs: Mapping[str, Array], threads: int) -> Run:
    """Return a run of LiteRT with its usual kernels, from arrays to arrays."""
    interpreter = _interpreter(path, threads)
    arrays = [np.require(array, requirements="C") for array in inputs.values()]
    sources = [detail["index"] for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def run() -> list[Array]:
        for index, array in zip(sources, arrays, strict=True):
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    return run


def _invocation_of_litert(path: Path, inputs: Mapping[str, Array], threads: int) -> Run:
    """Return a run of LiteRT without the copies of its inputs and outputs.

    Inputs that only the exported model has, those of its state, come last.
    """
    interpreter = _interpreter(path, threads)
    pairs = list(zip(interpreter.get_input_details(), inputs.values(), strict=False))
    for detail, array in pairs:
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in pairs:
        interpreter.set_tensor(detail["index"], np.require(array, requirements="C"))
    run: Run = interpreter.invoke
    return run


def _interpreter(path: Path, threads: int) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:160]
