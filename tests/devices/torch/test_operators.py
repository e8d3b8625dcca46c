"""Operators that take more than one call, against NumPy and ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tests.devices.conftest import Checker

from crosschip.exporters import export
from crosschip.hal import Options
from crosschip.ir import Array, Builder, DeviceError, ElementType, TensorType, symbol
from crosschip.ops.standard.arithmetic import Add, Div, Mod
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.indexing import Gather, ScatterND
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.reduction import CumSum
from crosschip.ops.standard.searching import TopK

RANDOM = np.random.default_rng(0)


def run(check: Checker, build: Any, *arrays: Array, typing: Any = None) -> list[Array]:
    model = check.built(build, arrays, typing or check.static)
    return list(check.outputs_of(check.device, model, arrays))


def test_integers_are_divided_towards_zero(check: Checker) -> None:
    x = np.array([7, -7, 9, -(2**31)], np.int32)
    y = np.array([2, 2, 0, -1], np.int32)
    quotient, rest = run(check, lambda b, x, y: (b.add(Div, x, y), b.add(Mod, x, y)), x, y)
    np.testing.assert_array_equal(quotient, [3, -3, 0, -(2**31)])
    np.testing.assert_array_equal(rest, [1, 1, 0, 0])


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_unsigned_integers_wrap_around(check: Checker, dtype: Any) -> None:
    x = np.array([np.iinfo(dtype).max, 1], dtype)
    (total,) = run(check, lambda b, x: b.add(Add, x, x), x)
    np.testing.assert_array_equal(total, x + x)


def test_narrow_floats(check: Checker) -> None:
    x = np.array([0.3, -500, 1e-9, np.nan, 7], np.float32)
    target = ElementType.FLOAT8E4M3FN

    def build(b: Builder, x: Any) -> Any:
        return b.add(Cast, b.add(Cast, x, target), ElementType.FLOAT32)

    (rounded,) = run(check, build, x)
    expected = np.clip(x, -448, 448).astype(target.dtype).astype(np.float32)
    np.testing.assert_array_equal(rounded, expected)


@pytest.mark.parametrize("mode", [PadMode.REFLECT, PadMode.EDGE, PadMode.SYMMETRIC, PadMode.WRAP])
def test_padding_with_elements(check: Checker, mode: PadMode) -> None:
    names = {1: "constant", 2: "reflect", 4: "edge", 5: "symmetric", 6: "wrap"}
    x = RANDOM.normal(size=(2, 3)).astype(np.float32)
    (padded,) = run(check, lambda b, x: b.add(Pad, x, (1, 0, 4, 5), mode), x)
    expected = np.pad(x, [(1, 0), (4, 5)], names[mode])  # type: ignore[call-overload]
    np.testing.assert_array_equal(padded, expected)


def test_equal_elements_keep_their_order(check: Checker) -> None:
    values, indices = run(check, lambda b, x: b.add_all(TopK, x, 4), np.ones(40, np.float32))
    np.testing.assert_array_equal(values, np.ones(4))
    np.testing.assert_array_equal(indices, np.arange(4))


def test_scatter_adds_to_one_place(check: Checker) -> None:
    x, places = np.zeros(4, np.int64), np.array([[1], [1], [-1]])
    updates = np.array([5, 6, 7])
    (total,) = run(check, lambda b, *o: b.add(ScatterND, *o, reduction=1), x, places, updates)
    np.testing.assert_array_equal(total, [0, 11, 0, 7])


def test_an_index_out_of_range_is_named(check: Checker) -> None:
    table = np.arange(6, dtype=np.float32)
    model = check.built(lambda b, t, i: b.add(Gather, t, i), [table, np.array([0, -6])])
    program = check.device.compile(model, Options())
    np.testing.assert_array_equal(program.run([table, np.array([5, -6])])[0], [5, 0])
    with pytest.raises(DeviceError, match=r"torch GATHER .*indices: one is not in \[-6, 6\)"):
        program.run([table, np.array([0, 6])])


def test_computed_parameters(check: Checker) -> None:
    """A shape that is computed from data, another one in each run."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"),)))
    shape = b.input("shape", TensorType(ElementType.INT64, (2,)))
    b.output("y", b.add(Reshape, x, shape))
    program = check.device.compile(b.build(), Options())
    array = np.arange(6, dtype=np.float32)
    for sizes in ((2, 3), (3, -1), (6, 1)):
        (result,) = program.run([array, np.array(sizes)])
        np.testing.assert_array_equal(result, array.reshape(sizes))
    with pytest.raises(DeviceError, match="shape"):
        program.run([array, np.array([4, 2])])


def test_a_size_is_inferred_without_elements(check: Checker) -> None:
    empty = np.zeros((0, 3, 4), np.float32)
    for typing in (check.static, check.symbolic):
        (result,) = run(check, lambda b, x: b.add(Reshape, x, (0, -1)), empty, typing=typing)
        assert result.shape == (0, 12)


def test_sizes_that_do_not_fit_are_refused(check: Checker) -> None:
    """PyTorch broadcasts a bias of one element; the definition has one a channel."""
    b = Builder()
    sizes = (symbol("N"), 2, symbol("H"), symbol("W"))
    x = b.input("x", TensorType(ElementType.FLOAT32, sizes))
    bias = b.input("bias", TensorType(ElementType.FLOAT32, (symbol("C"),)))
    b.output("y", b.add(Conv2D, x, np.ones((3, 2, 1, 1), np.float32), bias))
    program = check.device.compile(b.build(), Options())
    image = np.ones((1, 2, 3, 3), np.float32)
    assert program.run([image, np.ones(3, np.float32)])[0].shape == (1, 3, 3, 3)
    with pytest.raises(DeviceError, match="bias"):
        program.run([image, np.ones(1, np.float32)])


def test_cumulative_sums_round_each_time(check: Checker) -> None:
    x = np.array([3e38, 3e38, -3e38], np.float32)
    (total,) = run(check, lambda b, x: b.add(CumSum, x, 0), x)
    np.testing.assert_array_equal(total, np.array([3e38, np.inf, np.inf], np.float32))


IMAGE = RANDOM.normal(size=(2, 4, 9, 7)).astype(np.float32)
FILTER = RANDOM.normal(size=(4, 4, 3, 2)).astype(np.float32)


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: b.add(Conv2D, x, FILTER, pads=(1, 0, 2, 1), strides=(2, 1)),
        lambda b, x: b.add(Conv2DTranspose, x, FILTER, pads=(1, 0, 0, 1), strides=(2, 3)),
        lambda b, x: b.add(MaxPool2D, x, pads=(1, 0, 1, 1), kernel_shape=(3, 2), strides=(2, 2)),
        lambda b, x: b.add(AveragePool2D, x, pads=(1, 1, 0, 1), kernel_shape=(3, 3)),
    ],
    ids=["convolution", "transposed", "maximum", "average"],
)
def test_windows_with_different_sides(check: Checker, build: Any, tmp_path: Path) -> None:
    model = check.built(build, [IMAGE])
    (ours,) = check.outputs_of(check.device, model, [IMAGE])
    export(model, tmp_path / "model.onnx", verification=False)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (theirs,) = session.run(None, {session.get_inputs()[0].name: IMAGE})
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    symbolic = check.built(build, [IMAGE], check.symbolic)
    (dynamic,) = check.outputs_of(check.device, symbolic, [IMAGE])
    np.testing.assert_allclose(dynamic, theirs, rtol=1e-4, atol=1e-4)
