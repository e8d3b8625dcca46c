"""A model of pictures whose outputs NumPy computes too, and folders of pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from PIL import Image

import crosschip
from crosschip.ir import Array
from crosschip.runtime.compiled import CompiledModel

MEANS = """<ir_version: 8, opset_import: ["" : 17]>
means (uint8[N, height, width, 3] picture) => (float[N, 3] mean, float[N, 2, 3] ends)
<int64[2] two = {0, 1}> {
    real = Cast<to = 1>(picture)
    mean = ReduceMean<axes = [1, 2], keepdims = 0>(real)
    columns = ReduceMax<axes = [2], keepdims = 0>(real)
    ends = Gather<axis = 1>(columns, two)
}"""
"""The mean of each channel, and the greatest value of each channel in the first two rows."""

CENTERED = """<ir_version: 8, opset_import: ["" : 17]>
centered (float[N, 4] x) => (float[N, 4] y) {
    mean = ReduceMean<axes = [0], keepdims = 1>(x)
    y = Sub(x, mean)
}"""
"""Rows that depend on all rows."""


def save(text: str, path: Path) -> Path:
    """Write a model in ONNX's text form to a file."""
    onnx.save(parser.parse_model(text), path)
    return path


@pytest.fixture(scope="session")
def means_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(MEANS, tmp_path_factory.mktemp("model") / "means.onnx")


@pytest.fixture(scope="session")
def means(means_file: Path) -> Iterator[CompiledModel]:
    with crosschip.compile(means_file, "onnxruntime", cache=False) as compiled:
        yield compiled


def write_pictures(
    folder: Path, count: int, seed: int = 0, sizes: Sequence[int] = (5, 6, 7)
) -> list[str]:
    """Write small random pictures of several sizes; return their paths in order."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    paths = [str(folder / f"{index:05}.png") for index in range(count)]
    for path in paths:
        height, width = generator.choice(sizes, 2)
        pixels = generator.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(pixels).save(path)
    return paths


def expected(path: str) -> dict[str, Array]:
    """The outputs of the model for a picture, by the formulas."""
    pixels = np.asarray(Image.open(path)).astype(np.float64)
    return {"mean": pixels.mean((0, 1)), "ends": pixels.max(1)[:2]}


def assert_expected(path: str, outputs: dict[str, Array]) -> None:
    assert list(outputs) == ["mean", "ends"]
    for name, array in expected(path).items():
        np.testing.assert_allclose(outputs[name], array, rtol=1e-6)


def load_npz(path: Path) -> dict[str, Array]:
    """The arrays of an `.npz` file."""
    with np.load(path) as arrays:
        return dict(arrays)
