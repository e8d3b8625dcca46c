"""Preprocessing in the compiled model, against OpenCV and NumPy before it.

A picture of uint8 becomes what the network takes: resized with linear interpolation, red and blue
exchanged where the network takes BGR, normalized and transposed. Ours is one run of a model to
which `crosschip.Preprocess` is attached, compiled for pictures of all sizes, or for this size only.
The other is what programs do: `cv2.resize`, `cv2.cvtColor`, NumPy's arithmetic in float32 in place,
a transposition, and a run of the same network on the same device, compiled by crosschip for one
size. Both have one thread a core; before timing, both outputs are compared. The runs alternate in
bursts (see `latency`); the ratio is the median over the blocks. The last columns are the time of
the preprocessing alone, as a model without a network, and of OpenCV and NumPy.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import cv2
import numpy as np

import crosschip
from benchmarks.comparison import Estimate, compare
from benchmarks.engines import engines
from benchmarks.models import FOLDER
from benchmarks.subject import Column, Row
from crosschip.bench.timing import Run, interleave
from crosschip.demo.picture import DEMO_PICTURE
from crosschip.ir import Array, Builder, ElementType, Model, TensorType, symbol
from crosschip.ops.standard.conversion import Assign

LIMIT = 1.0
REQUIREMENT = f"the time with OpenCV and NumPy before the model is at least {LIMIT:g} times ours"

_SURE = 0.005
_PATIENCE_SECONDS = 6.0
_PICTURES = {"640x480": (480, 640), "1920x1080": (1080, 1920)}
_TOLERANCE = 0.1
"""The most by which outputs differ, of their largest number: pixels differ by a step of uint8."""


@dataclass(frozen=True)
class Network:
    """A network and how its pictures are preprocessed.

    Attributes:
        file: its file in the folder of models.
        settings: the preprocessing.
    """

    file: str
    settings: crosschip.Preprocess


_NETWORKS = {
    "ResNet50": Network(
        "onnx/resnet50.onnx",
        crosschip.Preprocess(
            resize=224,
            mean=(123.675, 116.28, 103.53),
            scale=(1 / 58.395, 1 / 57.12, 1 / 57.375),
        ),
    ),
    "PP-OCRv4 detection": Network(
        "ocr-onnx/ch_PP-OCRv4_det_infer.onnx",
        crosschip.Preprocess(resize=(736, 960), color="BGR", mean=127.5, scale=1 / 127.5),
    ),
    "PP-OCRv4 recognition": Network(
        "ocr-onnx/ch_PP-OCRv4_rec_infer.onnx",
        crosschip.Preprocess(resize=(48, 320), color="BGR", mean=127.5, scale=1 / 127.5),
    ),
}


@dataclass(frozen=True)
class Preprocessing(Row):
    """One network on one device, for pictures of one size."""

    device: Annotated[str, Column("device")]
    network: Annotated[str, Column("network")]
    picture: Annotated[str, Column("picture")]
    sizes: Annotated[str, Column("sizes")]
    before_ms: Annotated[float, Column("OpenCV, NumPy and model ms", ".3f")]
    ours_ms: Annotated[float, Column("in the model ms", ".3f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    alone_before_ms: Annotated[float, Column("OpenCV and NumPy alone ms", ".3f")]
    alone_ms: Annotated[float, Column("preprocessing alone ms", ".3f")]

    @property
    def met(self) -> bool:
        return self.ratio.value + self.ratio.error >= LIMIT


def measure(*, quick: bool) -> Iterator[Preprocessing]:
    """Each network on each device, for each size of pictures."""
    scene = crosschip.read_picture(DEMO_PICTURE)
    for device in (*engines(), "xla"):
        for name, network in _NETWORKS.items():
            for picture_name, size in _PICTURES.items():
                picture = np.asarray(cv2.resize(scene, size[::-1]), np.uint8)
                for sizes in ("open", "fixed"):
                    row = _measure(device, network, picture, sizes, quick=quick)
                    yield Preprocessing(device, name, picture_name, sizes, *row)


def _measure(
    device: str, network: Network, picture: Array, sizes: str, *, quick: bool
) -> tuple[float, float, Estimate, float, float]:
    model = crosschip.load(FOLDER / network.file)
    before = partial(_before, model, network.settings, device, picture)
    ours = partial(_ours, model, network.settings, device, picture, sizes)
    _check(network.file, before()(), ours()())
    result = compare(
        ours,
        before,
        seconds=0.2 if quick else 0.5,
        blocks=2 if quick else 4,
        error=_SURE,
        patience=0 if quick else _PATIENCE_SECONDS,
    )
    alone: dict[str, Run] = {
        "before": partial(preprocess, picture, network.settings),
        "ours": _ours(_mirror(model), network.settings, device, picture, sizes),
    }
    times = interleave(alone, 10 if quick else 100)
    alone_ms = [statistics.median(times[name]) * 1e3 for name in alone]
    return result.direct_ms, result.ours_ms, result.ratio, alone_ms[0], alone_ms[1]


def preprocess(picture: Array, settings: crosschip.Preprocess) -> Array:
    """Preprocess a picture by OpenCV and NumPy."""
    assert isinstance(settings.resize, tuple)
    resized = cv2.resize(picture, settings.resize[::-1])
    if settings.color == "BGR":
        resized = cv2.cvtColor(resized, cv2.COLOR_RGB2BGR)
    pixels = resized.astype(np.float32)
    pixels -= np.array(settings.mean, np.float32)
    pixels *= np.array(settings.scale, np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def _before(model: Model, settings: crosschip.Preprocess, device: str, picture: Array) -> Run:
    """Compile a network; return a run after OpenCV and NumPy."""
    (name,) = model.inputs
    shape = preprocess(picture, settings).shape
    compiled = _compile(model, device, {name: shape})
    return lambda: compiled.run({name: preprocess(picture, settings)})


def _ours(
    model: Model, settings: crosschip.Preprocess, device: str, picture: Array, sizes: str
) -> Run:
    """Compile a network with its preprocessing; return a run."""
    (name,) = model.inputs
    batch = {name: picture[None]}
    shapes = {name: batch[name].shape} if sizes == "fixed" else {name: (1, None, None, 3)}
    compiled = _compile(settings.attach(model), device, shapes)
    return lambda: compiled.run(batch)


def _compile(model: Model, device: str, shapes: Mapping[str, object]) -> crosschip.CompiledModel:
    threads = None if device == "xla" else os.cpu_count()  # xla takes all cores
    return crosschip.compile(model, device, shapes=shapes, threads=threads, cache=False)  # type: ignore[arg-type]


def _mirror(model: Model) -> Model:
    """Return a model that outputs its input, which is that of a network."""
    (name,) = model.inputs
    b = Builder("mirror")
    sizes = (1, 3, symbol("H"), symbol("W"))
    b.output("y", b.add(Assign, b.input(name, TensorType(ElementType.FLOAT32, sizes))))
    return b.build()


def _check(what: str, one: object, other: object) -> None:
    assert isinstance(one, Mapping)
    assert isinstance(other, Mapping)
    for first, second in zip(one.values(), other.values(), strict=True):
        if not np.abs(first - second).max() <= _TOLERANCE * np.abs(first).max():
            raise RuntimeError(f"{what}: the outputs differ; the times say nothing")
