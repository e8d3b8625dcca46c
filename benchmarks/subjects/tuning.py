"""The precisions that `tune` selects within an error bound, and their speed.

Each network is tuned on all engines, for a given error bound: the Euclidean norm of the difference
of its outputs from float32, relative to that of float32. PP-OCRv4's detection reads the
demonstration's picture, and must find the same boxes; the others get normally distributed inputs.
BERT has 6 layers with a width of 256, 64 words and random weights. Then the selected configuration,
and float32 on its fastest device, run in turn again. The rows of one precision use the device's
`precision` for the whole model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

import crosschip
from benchmarks.comparison import Estimate, compare
from benchmarks.models import model_file
from benchmarks.samples import BERT, example, file_of
from benchmarks.subject import Column, Row
from crosschip import Model
from crosschip.accuracy.error import error_of
from crosschip.demo import detection
from crosschip.demo.models import model_folder
from crosschip.demo.picture import DEMO_PICTURE, load, planes
from crosschip.hal import Precision
from crosschip.ir import Array
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.discovery import open_device
from crosschip.tuning.tuning import tune

REQUIREMENT = (
    "ResNet50 in bfloat16, on a processor that has it, is 1.7 times as fast as in float32; "
    "PP-OCRv4's detection within an error of 1e-2 is 1.3 times as fast and finds the same boxes; "
    "int8 within the stated error is 1.5 times as fast; BERT within 3e-2 is 1.5 times as fast"
)
_ENGINES = ("openvino", "onnxruntime")
_SURE, _PATIENCE_SECONDS = 0.01, 6.0


@dataclass(frozen=True)
class Tuned(Row):
    """One network, computed in a way that was asked for or found."""

    network: Annotated[str, Column("network")]
    asked: Annotated[str, Column("asked for")]
    way: Annotated[str, Column("computed by")]
    error: Annotated[float, Column("error", ".1e")]
    exact_ms: Annotated[float, Column("float32 ms", ".2f")]
    ms: Annotated[float, Column("ms", ".2f")]
    ratio: Annotated[Estimate, Column("times as fast", ".2f")]
    same: Annotated[str, Column("same result")]
    least: Annotated[float, Column("at least", ".1f")]

    @property
    def met(self) -> bool:
        return self.ratio.value >= self.least and self.same != "no"


def measure(*, quick: bool) -> Iterator[Tuned]:
    """Each network with what is asked of it."""
    pictures = _pictures((1, 3, 224, 224))
    resnet = crosschip.load(model_file("ResNet50", ".onnx").path)
    if Precision.BFLOAT16 in open_device("openvino").capabilities.precisions:
        yield _one_precision("ResNet50", resnet, pictures, quick=quick)
    if quick:
        return
    text = [{"x": _picture()}]
    yield _tuned("PP-OCRv4 det", crosschip.load(model_folder("detection")), text, 1e-2, (), 1.3)
    yield _tuned("ResNet50", resnet, pictures, 5e-2, ("int8",), 1.5)
    mobile = crosschip.load(model_file("MobileNetV2", ".onnx").path)
    yield _tuned("MobileNetV2", mobile, pictures, 0.25, ("int8",), 1.5)
    with file_of(BERT) as path:
        bert = crosschip.load(path)
    words = [{name: example(BERT, number) for name in bert.inputs} for number in range(8)]
    yield _tuned(BERT, bert, words, 3e-2, (), 1.5)


def _pictures(shape: Sequence[int]) -> list[Mapping[str, Array]]:
    random = np.random.default_rng(0)
    return [{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(8)]


def _picture() -> Array:
    picture = load(DEMO_PICTURE)
    height, width = picture.shape[:2]
    return planes(picture, *detection.input_size(width, height))[np.newaxis]


def _one_precision(
    network: str, model: Model, samples: Sequence[Mapping[str, Array]], *, quick: bool
) -> Tuned:
    shapes = {name: value.shape for name, value in samples[0].items()}
    exact = crosschip.compile(model, "openvino", shapes=shapes)
    rough = crosschip.compile(model, "openvino", shapes=shapes, precision="bfloat16")
    name = "openvino bfloat16"
    return _row(network, "precision bfloat16", name, exact, rough, samples, 1.7, quick=quick)


def _tuned(
    network: str,
    model: Model,
    samples: Sequence[Mapping[str, Array]],
    accuracy: float,
    precisions: Sequence[str],
    least: float,
) -> Tuned:
    found = tune(model, _ENGINES, accuracy=accuracy, samples=samples, precisions=precisions or None)
    real = (t for t in found.trials if t.variant.precision == "float32" and t.speed == 1.0)
    fastest = next(real).variant.device
    shapes = {name: value.shape for name, value in samples[0].items()}
    exact = crosschip.compile(model, fastest, shapes=shapes)
    asked = f"error {accuracy:g}" + "".join(f", {name}" for name in precisions)
    way = found.chosen.variant.name
    return _row(network, asked, way, exact, found.compiled, samples, least, quick=False)


def _row(
    network: str,
    asked: str,
    way: str,
    exact: CompiledModel,
    rough: CompiledModel,
    samples: Sequence[Mapping[str, Array]],
    least: float,
    *,
    quick: bool,
) -> Tuned:
    sample = samples[0]
    result = compare(
        lambda: partial(rough.run, sample),
        lambda: partial(exact.run, sample),
        seconds=0.2 if quick else 0.5,
        blocks=2 if quick else 4,
        error=_SURE,
        patience=0 if quick else _PATIENCE_SECONDS,
    )
    made, right = ([model.run(each) for each in samples] for model in (rough, exact))
    error = error_of(made, right)
    same = _same_boxes(made[0], right[0]) if network.endswith("det") else ""
    exact.close()
    rough.close()
    return Tuned(
        network, asked, way, error, result.direct_ms, result.ours_ms, result.ratio, same, least
    )


def _same_boxes(made: Mapping[str, Array], right: Mapping[str, Array]) -> str:
    """Tell whether the boxes on the demonstration's picture are the same, to a pixel."""
    ours, theirs = (_boxes(*outputs.values()) for outputs in (made, right))
    alike = len(ours) == len(theirs) and np.allclose(ours, theirs, atol=1.0)
    return f"yes, {len(theirs)} boxes" if alike else "no"


def _boxes(probability: Array) -> Sequence[Array]:
    height, width = load(DEMO_PICTURE).shape[:2]
    return [np.asarray(quad) for quad in detection.quads(probability[0, 0], width, height)]
