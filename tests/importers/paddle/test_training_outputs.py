"""Outputs for training only: shapes for the backward pass, and statistics."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.paddle.helpers import VALUE, import_error, normal, outputs, small
from tests.importers.paddle.writers import Paddle2Writer, record

from crosschip.importers import load
from crosschip.ir import Array

IMAGE = normal(1, 2, 1, 4, 6)
ROWS = IMAGE.reshape(2, -1)
RESHAPED: list[tuple[str, Mapping[str, Any], Array]] = [
    ("reshape2", {"shape": [2, 24]}, ROWS),
    ("transpose2", {"axis": [0, 2, 3, 1]}, IMAGE.transpose(0, 2, 3, 1)),
    ("flatten2", {"axis": 1}, ROWS),
    ("flatten_contiguous_range", {"start_axis": 1, "stop_axis": 3}, ROWS),
    ("squeeze2", {"axes": [1]}, IMAGE[:, 0]),
    ("squeeze2", {"axes": [2]}, IMAGE),
    ("unsqueeze2", {"axes": [1]}, IMAGE[:, None]),
]


def reshaping(type: str, attributes: Mapping[str, Any], sizes: list[int]) -> Paddle2Writer:
    """Return a model with one operator that reads `x` and outputs `y` and the shape `s`."""
    writer = Paddle2Writer()
    writer.input("x", "float32", sizes)
    writer.operator(type, {"X": "x"}, {"Out": "y", "XShape": "s"}, attributes)
    writer.output("y")
    return writer


@pytest.mark.parametrize("sizes", [[2, 1, 4, 6], [-1, 1, 4, -1]])
@pytest.mark.parametrize(("type", "attributes", "expected"), RESHAPED)
def test_shapes_are_handed_out(
    tmp_path: Path, type: str, attributes: Mapping[str, Any], expected: Array, sizes: list[int]
) -> None:
    writer = reshaping(type, attributes, sizes)
    writer.output("s")
    made, shape = outputs(load(writer.save(tmp_path)), {"x": IMAGE})
    np.testing.assert_array_equal(made, expected)
    assert shape.shape == (0, *IMAGE.shape)


@pytest.mark.parametrize(("type", "attributes", "expected"), RESHAPED)
def test_a_stored_shape_of_another_size_is_of_no_account(
    tmp_path: Path, type: str, attributes: Mapping[str, Any], expected: Array
) -> None:
    writer = reshaping(type, attributes, list(IMAGE.shape))
    writer.parameter("s", np.ones(7, np.float32))
    writer.block.vars[-1].type.lod_tensor.tensor.dims[:] = [0, *IMAGE.shape]
    (made,) = outputs(load(writer.save(tmp_path)), {"x": IMAGE})
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(("type", "attributes", "expected"), RESHAPED)
def test_a_stored_shape_that_no_operator_makes_is_of_no_account(
    tmp_path: Path, type: str, attributes: Mapping[str, Any], expected: Array
) -> None:
    """Paddle removes training outputs from operators, but keeps their variables."""
    writer = Paddle2Writer()
    writer.input("x", "float32", IMAGE.shape)
    writer.parameter("s", np.ones(7, np.float32))
    writer.block.vars[-1].type.lod_tensor.tensor.dims[:] = [0, *IMAGE.shape]
    writer.operator(type, {"X": "x"}, {"Out": "y"}, attributes)
    writer.output("y")
    model = load(writer.save(tmp_path))
    assert "s" not in {constant.name for constant in model.constants}
    np.testing.assert_array_equal(outputs(model, {"x": IMAGE})[0], expected)
    writer.output("s")
    _, stored = outputs(load(writer.save(tmp_path)), {"x": IMAGE})
    np.testing.assert_array_equal(stored, np.ones(7, np.float32))  # as Paddle hands it out


def test_a_parameter_that_nothing_reads_may_be_anything(tmp_path: Path) -> None:
    """Its record is skipped, with its levels of detail."""
    writer = small()
    unread = np.arange(5, dtype=np.float64)
    writer.parameter("a", unread)
    path = writer.save(tmp_path)
    file = path.with_suffix(".pdiparams")
    head, levels = struct.Struct("<IQ"), struct.pack("<Q2Q", 16, 0, 5)
    content = file.read_bytes()
    file.write_bytes(head.pack(0, 1) + levels + content[head.size :])
    x = normal(6, 2, 3)
    np.testing.assert_array_equal(outputs(load(path), {"x": x})[0], x)
    file.write_bytes(head.pack(0, 9) + content[head.size :])
    assert "parameter 'a': has 9 levels of detail (LoD)" in import_error(path)


def test_the_file_of_a_parameter_that_nothing_reads_may_be_missing(tmp_path: Path) -> None:
    writer = small()
    writer.parameter("a", VALUE)
    (tmp_path / "__model__").write_bytes(writer.program.SerializeToString())
    assert "w: there is no such file" in import_error(tmp_path / "__model__")
    (tmp_path / "w").write_bytes(record(VALUE))
    x = normal(6, 2, 3)
    np.testing.assert_array_equal(outputs(load(tmp_path), {"x": x})[0], x)


def test_a_parameter_that_is_read_before_it_is_made_must_fit(tmp_path: Path) -> None:
    writer = small()
    writer.operator("assign", {"X": "y"}, {"Out": "w"})
    writer.block.vars[1].type.lod_tensor.tensor.dims[:] = [3, 4]
    assert (
        "parameter 'w': is float32[3, 3], but the program has it as float32[3, 4]"
        in import_error(writer.save(tmp_path))
    )


def test_statistics_of_batch_normalization(tmp_path: Path) -> None:
    """The outputs are the statistics of the inputs; Paddle returns uninitialized memory."""
    mean, variance = normal(2, 4), np.square(normal(3, 4)) + np.float32(0.1)
    writer = Paddle2Writer()
    writer.input("x", "float32", [-1, 4])
    writer.parameter("m", mean)
    writer.parameter("v", variance)
    slots = {"Y": "y", "MeanOut": "m", "VarianceOut": "v", "SavedMean": "sm", "SavedVariance": "sv"}
    writer.operator("batch_norm", {"X": "x", "Mean": "m", "Variance": "v"}, slots, {"epsilon": 0.5})
    for name in slots.values():
        writer.output(name)
    x = normal(4, 3, 4)
    y, *statistics = outputs(load(writer.save(tmp_path)), {"x": x})
    deviation = np.sqrt(variance + 0.5)
    np.testing.assert_allclose(y, (x - mean) / deviation, rtol=1e-5)
    for result, expected in zip(statistics, (mean, variance, mean, 1 / deviation), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_statistics_of_instance_normalization(tmp_path: Path) -> None:
    """The outputs are the mean and the reciprocal deviation of each image and channel."""
    writer = Paddle2Writer()
    writer.input("x", "float32", [-1, 3, -1, -1])
    slots = {"Y": "y", "SavedMean": "sm", "SavedVariance": "sv"}
    writer.operator("instance_norm", {"X": "x"}, slots, {"epsilon": 0.5})
    for name in slots.values():
        writer.output(name)
    x = normal(5, 2, 3, 4, 6)
    _, mean, deviation = outputs(load(writer.save(tmp_path)), {"x": x})
    np.testing.assert_allclose(mean, x.mean((2, 3)).ravel(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(deviation, (x.var((2, 3)).ravel() + 0.5) ** -0.5, rtol=1e-5)
