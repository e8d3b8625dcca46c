"""Features of Paddle 3 only: tensor arrays, in-place operators, and more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.helpers import import_error, normal, outputs
from tests.importers.paddle.writers import Paddle2Writer, Paddle3Writer, tensor_type

from crosschip.importers import load
from crosschip.ir import ElementType

X = normal(0, 2, 4)
ARRAY = {"#": "1.t_dtensor_array", "D": [{"#": "0.t_f32"}, [], "NCHW"]}


def write_index(writer: Paddle3Writer, number: int) -> int:
    return writer.parameter(f"i{number}", np.array([number], np.int64))


def test_an_operator_that_writes_over_its_input(tmp_path: Path) -> None:
    """Later readers of the input read the result; earlier readers read the original value."""
    writer = Paddle3Writer()
    x = writer.input("x", "float32", [2, 4])
    before = writer.operator("1.exp", [x])
    writer.operator("1.relu_", [x])
    writer.output(before)
    writer.output(writer.operator("1.square", [x]))
    result = outputs(load(writer.save(tmp_path)), {"x": X})
    np.testing.assert_allclose(result[0], np.exp(X), 1e-6)
    np.testing.assert_allclose(result[1], np.maximum(X, 0) ** 2, 1e-6)


@pytest.mark.parametrize("use_stack", [False, True])
def test_arrays_of_tensors(tmp_path: Path, use_stack: bool) -> None:
    writer = Paddle3Writer()
    first, second = write_index(writer, 0), write_index(writer, 1)
    x = writer.input("x", "float32", [2, 4])
    array = writer.operator("1.create_array", [], {"dtype": ElementType.FLOAT32}, [ARRAY])
    doubled = writer.operator("1.add", [x, x])
    writer.operator("1.array_write_", [array, x, first], {}, [ARRAY])
    writer.operator("1.array_write_", [array, x, second], {}, [ARRAY])
    writer.operator("1.array_write_", [array, doubled, first], {}, [ARRAY])
    writer.output(writer.operator("1.array_length", [array]))
    writer.output(writer.operator("1.array_read", [array, second]))
    types = [tensor_type("float32", []), tensor_type("int32", [])]
    settings = {"axis": 1, "use_stack": use_stack}
    writer.output(writer.operator("1.array_to_tensor", [array], settings, types))
    length, read, whole = outputs(load(writer.save(tmp_path)), {"x": X})
    assert length == 2
    np.testing.assert_array_equal(read, X)
    join = np.stack if use_stack else np.concatenate
    np.testing.assert_array_equal(whole, join([2 * X, X], axis=1))


def test_arrays_in_paddle_2(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "float32", [2, 4])
    writer.parameter("zero", np.array([0], np.int64))
    writer.operator("write_to_array", {"X": "x", "I": "zero"}, {"Out": "a"})
    writer.operator("read_from_array", {"X": "a", "I": "zero"}, {"Out": "y"})
    outs = {"Out": "z", "OutIndex": "sizes"}
    writer.operator("tensor_array_to_tensor", {"X": "a"}, outs, {"axis": 1})
    for name in ("y", "z", "sizes"):
        writer.output(name)
    read, whole, sizes = outputs(load(writer.save(tmp_path)), {"x": X})
    np.testing.assert_array_equal(read, X)
    np.testing.assert_array_equal(whole, X)
    np.testing.assert_array_equal(sizes, [4])


def test_an_array_that_nothing_fills_is_refused(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "int64", [1])
    writer.operator("read_from_array", {"X": "a", "I": "x"}, {"Out": "y"})
    writer.output("y")
    assert "X: 'a' is an array that control flow fills" in import_error(writer.save(tmp_path))


def test_a_place_in_an_array_must_be_known(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "int64", [1])
    writer.operator("write_to_array", {"X": "x", "I": "x"}, {"Out": "a"})
    writer.output("a")
    assert "I: the index in an array is computed" in import_error(writer.save(tmp_path))


def test_masked_fill(tmp_path: Path) -> None:
    writer = Paddle3Writer()
    value = writer.parameter("v", np.array(-7, np.float32))
    x, mask = writer.input("x", "float32", [2, 4]), writer.input("m", "bool", [2, 4])
    writer.output(writer.operator("1.masked_fill", [x, mask, value]))
    (result,) = outputs(load(writer.save(tmp_path)), {"x": X, "m": X > 0})
    np.testing.assert_array_equal(result, np.where(X > 0, np.float32(-7), X))


@pytest.mark.parametrize("has_gate", [False, True])
def test_swiglu(tmp_path: Path, has_gate: bool) -> None:
    writer = Paddle3Writer()
    x = writer.input("x", "float32", [2, 4])
    if has_gate:
        gated = writer.operator("1.swiglu", [x, writer.operator("1.exp", [x])])
        expected = X / (1 + np.exp(-X)) * np.exp(X)
    else:
        gated = writer.operator("1.swiglu", [x, 0])
        expected = X[:, :2] / (1 + np.exp(-X[:, :2])) * X[:, 2:]
    writer.output(gated)
    (result,) = outputs(load(writer.save(tmp_path)), {"x": X})
    np.testing.assert_allclose(result, expected, 1e-6)
