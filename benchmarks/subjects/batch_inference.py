"""Throughput of `crosschip map`, against a loop written by hand.

A folder of JPEG pictures is classified: each is decoded, resized to 224×224 and normalized, and the
five best classes of each become a line of JSON, in order. Crosschip runs a `BatchJob` with
`Preprocess`, on ONNX Runtime, and can be stopped at any moment. The loop by hand decodes with
OpenCV or, as crosschip does, with Pillow, and resizes with OpenCV, in as many threads as there are
processors, two batches ahead of an ONNX Runtime session of the same file; it writes lines with
`json`. All take batches of 16.

What is timed is the whole folder, compilation excepted; the competitors take turns, and the ratio
is the median over blocks, as for latency. Both networks see the same pixels within one step of 255,
and both write a line for each picture in order.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Annotated, Any

import cv2
import numpy as np
import onnxruntime
from PIL import Image

import crosschip
from benchmarks.comparison import Estimate, compare
from benchmarks.models import model_file
from benchmarks.subject import Column, Row
from crosschip.batch_inference import BatchJob
from crosschip.batch_inference.classes import Classes
from crosschip.batch_inference.mapping import Mapper
from crosschip.bench.timing import Run
from crosschip.ir import Array

LIMIT = 0.95
REQUIREMENT = f"at least {LIMIT:g} of the throughput of the loop by hand"

_NETWORKS = {"ResNet50": 48, "MobileNetV3-small": 160}
"""For each network: how many pictures are timed together."""

_SIZES = {"500×375": (375, 500), "1280×960": (960, 1280)}
_BATCH, _TOP, _SIDE = 16, 5, 224
_MEAN, _SCALE = (123.675, 116.28, 103.53), (1 / 58.395, 1 / 57.12, 1 / 57.375)
_PREPROCESS = crosschip.Preprocess(resize=_SIDE, mean=_MEAN, scale=_SCALE)


@dataclass(frozen=True)
class Mapping(Row):
    """One network over pictures of one size."""

    network: Annotated[str, Column("network")]
    pictures: Annotated[str, Column("pictures")]
    decoder: Annotated[str, Column("by hand with")]
    theirs: Annotated[float, Column("by hand pictures/s", ".1f")]
    ours: Annotated[float, Column("crosschip pictures/s", ".1f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.ratio.value >= LIMIT


def measure(*, quick: bool) -> Iterator[Mapping]:
    """Each network over pictures of each size."""
    networks = {"MobileNetV3-small": _BATCH} if quick else _NETWORKS
    for network, number in networks.items():
        for size, (height, width) in _SIZES.items():
            with TemporaryDirectory() as folder:
                paths = _draw(Path(folder), number, height, width)
                for decoder in _DECODERS:
                    yield _compared(network, size, decoder, paths, Path(folder), quick=quick)


def _compared(
    network: str, size: str, decoder: str, paths: Sequence[str], folder: Path, *, quick: bool
) -> Mapping:
    file = model_file(network, ".onnx").path
    ours = partial(_ours, file, paths, folder)
    direct = partial(_by_hand, file, paths, folder, _DECODERS[decoder])
    assert _files(ours()) == _files(direct()) == paths, "both have all results in order"
    _check_pixels(paths[0], _DECODERS[decoder])
    comparison = compare(
        ours,
        direct,
        seconds=0.3 if quick else 5,
        blocks=1 if quick else 3,
        patience=0 if quick else 60,
    )
    theirs, own = (len(paths) * 1e3 / ms for ms in (comparison.direct_ms, comparison.ours_ms))
    return Mapping(network, size, decoder, theirs, own, comparison.ratio, comparison.others)


def _ours(file: Path, paths: Sequence[str], folder: Path) -> Run:
    compiled = crosschip.compile(file, "onnxruntime", cache=False)
    mapper = Mapper(compiled, _PREPROCESS, batch_size=_BATCH)

    def run() -> Path:
        out = Path(mkdtemp(dir=folder))  # a folder with results would be a job that is done
        with BatchJob(out, paths, {}, batch_size=_BATCH, classes=Classes(_TOP)) as job:
            job.run_mapper(mapper)
        return out / "results.jsonl"

    return run


def _by_hand(file: Path, paths: Sequence[str], folder: Path, decode: Callable[[str], Array]) -> Run:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    threads = os.cpu_count() or 1
    cv2.setNumThreads(1)

    def run() -> Path:
        out = Path(mkdtemp(dir=folder)) / "results.jsonl"
        pending: deque[Future[Array]] = deque()
        with ThreadPoolExecutor(threads) as pool, out.open("w") as log:
            for start in range(0, len(paths), _BATCH):
                for path in paths[start + len(pending) : start + 2 * _BATCH]:
                    pending.append(pool.submit(_read, path, decode))
                batch = paths[start : start + _BATCH]
                images = np.stack([pending.popleft().result() for _ in batch])
                (scores,) = session.run(None, {name: images})
                for path, row in zip(batch, scores, strict=True):
                    best = [int(index) for index in row.argsort()[::-1][:_TOP]]
                    top = [{"class": index, "score": float(row[index])} for index in best]
                    log.write(json.dumps({"file": path, "top": top}) + "\n")
        return out

    return run


def _decode_with_opencv(path: str) -> Array:
    pixels: Any = cv2.imread(path)
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB))


def _decode_with_pillow(path: str) -> Array:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


_DECODERS = {"OpenCV": _decode_with_opencv, "Pillow, OpenCV": _decode_with_pillow}


def _read(path: str, decode: Callable[[str], Array]) -> Array:
    """Return a picture as the network takes it."""
    resized = cv2.resize(decode(path), (_SIDE, _SIDE)).astype(np.float32)
    normalized = (resized - np.array(_MEAN, np.float32)) * np.array(_SCALE, np.float32)
    return np.ascontiguousarray(normalized.transpose(2, 0, 1))


def _files(run: Run) -> list[str]:
    """Return the files of the lines that a run writes."""
    log = Path(str(run()))
    return [json.loads(line)["file"] for line in log.read_text().splitlines()]


def _check_pixels(path: str, decode: Callable[[str], Array]) -> None:
    """Assert that both networks see the same picture within a step of 255."""
    ours = _PREPROCESS.apply(crosschip.read_picture(path))[0]
    steps = (ours - _read(path, decode)) / np.array(_SCALE)[:, None, None]
    assert np.abs(steps).max() < 1.001


def _draw(folder: Path, number: int, height: int, width: int) -> list[str]:
    """Write JPEG pictures of blurred noise, which is about as hard to decode as a photograph."""
    generator = np.random.default_rng(0)
    paths = [str(folder / f"{index:04}.jpg") for index in range(number)]
    for path in paths:
        noise = generator.integers(0, 256, (height // 4, width // 4, 3), np.uint8)
        cv2.imwrite(path, cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC))
    return paths
