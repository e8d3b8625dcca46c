"""Operators and attributes that Paddle 2.6 cannot run, compared with formulas.

They come from fusing and quantizing passes of Paddle Lite, or from Paddle 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.paddle.helpers import normal, outputs
from tests.importers.paddle.writers import Paddle2Writer

from crosschip.importers import load
from crosschip.ir import Array, Error, ModelFileError

IMAGE = normal(1, 2, 4, 5, 6)
SECOND = normal(2, 2, 4, 5, 6)


def run_operator(
    folder: Path,
    type: str,
    slots: Mapping[str, str],
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array] | None = None,
    output: str = "Out",
) -> Array:
    """Return the only output of a model with one operator."""
    writer = Paddle2Writer()
    for name, array in inputs.items():
        writer.input(name, str(array.dtype), array.shape)
    for name, array in (parameters or {}).items():
        writer.parameter(name, array)
    writer.operator(type, slots, {output: "made"}, attributes)
    writer.output("made")
    (result,) = outputs(load(writer.save(folder)), inputs)
    return result


ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
    "floordiv": np.floor_divide,
}
BOUNDS = {"": (-np.inf, np.inf), "relu": (0, np.inf), "relu1": (-1, 1), "relu6": (0, 6)}


@pytest.mark.parametrize("act_type", BOUNDS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_with_an_activation(tmp_path: Path, name: str, act_type: str) -> None:
    x = np.abs(IMAGE) + 0.5 if name == "pow" else IMAGE
    result = run_operator(
        tmp_path,
        f"fusion_elementwise_{name}_activation",
        {"X": "x", "Y": "y"},
        {"axis": 1, "act_type": act_type},
        {"x": x},
        {"y": SECOND[0, :, :, 0]},
    )
    expected = ARITHMETIC[name](x, SECOND[0, :, :, :1]).clip(*BOUNDS[act_type])
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("act_type", BOUNDS)
@pytest.mark.parametrize("type", ["conv2d", "conv2d_transpose"])
def test_convolution_with_a_bias_and_an_activation(
    tmp_path: Path, type: str, act_type: str
) -> None:
    weight = SECOND[0, :, :3, 0]
    filter = weight.T if type == "conv2d" else weight
    result = run_operator(
        tmp_path,
        type,
        {"Input": "x", "Filter": "w", "Bias": "b"},
        {"act_type": act_type},
        {"x": IMAGE},
        {"w": np.ascontiguousarray(filter)[..., None, None], "b": SECOND[0, 0, 0, :3]},
        "Output",
    )
    product = np.einsum("nchw,co->nohw", IMAGE, weight) + SECOND[0, 0, 0, :3, None, None]
    np.testing.assert_allclose(result, product.clip(*BOUNDS[act_type]), rtol=1e-5, atol=1e-6)


def test_reals_to_int8(tmp_path: Path) -> None:
    reals = np.array([0, 0.24, -0.26, 1.1, -2.2, 63, 64, -100], np.float32)
    result = run_operator(tmp_path, "calib", {"Input": "x"}, {"scale": 0.5}, {"x": reals})
    assert result.dtype == np.int8
    assert result.tolist() == [0, 0, -1, 2, -4, 126, 127, -128]


def test_int8_to_reals(tmp_path: Path) -> None:
    integers = np.array([0, 1, -128, 127], np.int8)
    result = run_operator(tmp_path, "calib", {"Input": "x"}, {"scale": 0.25}, {"x": integers})
    assert result.dtype == np.float32
    assert result.tolist() == [0, 0.25, -32, 31.75]


def test_reals_to_int8_and_back(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "float32", IMAGE.shape)
    writer.operator("calib", {"Input": "x"}, {"Out": "integers"}, {"scale": 0.125})
    writer.operator("calib", {"Input": "integers"}, {"Out": "y"}, {"scale": 0.125})
    writer.output("y")
    (result,) = outputs(load(writer.save(tmp_path)), {"x": IMAGE})
    np.testing.assert_array_equal(result, np.rint(IMAGE * 8) / 8)


PADS = (1, 2, 3, 1)
MODES = {"constant": {"constant_values": 0.5}, "reflect": {}, "edge": {}}


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("mode", MODES)
def test_padding_of_images(tmp_path: Path, mode: Any, layout: str) -> None:
    attributes = {
        "paddings": list(PADS),
        "mode": mode,
        "pad_value": 0.5,
        "data_format": layout,
    }
    result = run_operator(tmp_path, "pad2d", {"X": "x"}, attributes, {"x": IMAGE})
    np.testing.assert_array_equal(result, pad_image(IMAGE, layout, mode, MODES[mode]))


@pytest.mark.parametrize("is_computed", [True, False])
def test_padding_of_images_by_a_tensor(tmp_path: Path, is_computed: bool) -> None:
    paddings = {"pads": np.array(PADS, np.int32)}
    result = run_operator(
        tmp_path,
        "pad2d",
        {"X": "x", "Paddings": "pads"},
        {"paddings": [0, 0, 0, 0], "mode": "edge"},
        {"x": IMAGE} | (paddings if is_computed else {}),
        {} if is_computed else paddings,
    )
    np.testing.assert_array_equal(result, pad_image(IMAGE, "NCHW", "edge", {}))


def pad_image(image: Array, layout: str, mode: Any, named: Mapping[str, float]) -> Array:
    """Pad an image with `PADS` (top, bottom, left, right)."""
    widths: Sequence[tuple[int, int]] = [(0, 0), (0, 0), PADS[:2], PADS[2:]]
    if layout == "NHWC":
        widths = [(0, 0), PADS[:2], PADS[2:], (0, 0)]
    return np.asarray(np.pad(image, widths, mode, **named))


@pytest.mark.parametrize(
    ("threshold", "scale", "offset"), [(5, 5, 2), (6, 6, 3), (4, 5, 2), (1, -2, 0)]
)
def test_hard_swish(tmp_path: Path, threshold: float, scale: float, offset: float) -> None:
    x = 4 * IMAGE
    attributes = {"threshold": float(threshold), "scale": float(scale), "offset": float(offset)}
    result = run_operator(tmp_path, "hard_swish", {"X": "x"}, attributes, {"x": x})
    expected = x * (x + offset).clip(0, threshold) / scale
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_batch_norm_without_scale_and_bias(tmp_path: Path) -> None:
    mean, variance = SECOND[0, :, 0, 0], np.abs(SECOND[0, :, 0, 1])
    result = run_operator(
        tmp_path,
        "batch_norm",
        {"X": "x", "Mean": "m", "Variance": "v"},
        {"epsilon": 0.001},
        {"x": IMAGE},
        {"m": mean, "v": variance},
        "Y",
    )
    deviation = np.sqrt(variance + 0.001)
    expected = (IMAGE - mean[:, None, None]) / deviation[:, None, None]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_roll_of_paddle_1(tmp_path: Path) -> None:
    attributes = {"shifts": [1, -2], "dims": [1, 3]}
    result = run_operator(tmp_path, "roll", {"X": "x"}, attributes, {"x": IMAGE})
    np.testing.assert_array_equal(result, np.roll(IMAGE, (1, -2), (1, 3)))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_comparison_along_an_axis(tmp_path: Path, axis: int) -> None:
    row = IMAGE.mean(tuple(i for i in range(4) if i != axis))
    slots, attributes = {"X": "x", "Y": "y"}, {"axis": axis}
    result = run_operator(tmp_path, "less_than", slots, attributes, {"x": IMAGE}, {"y": row})
    np.testing.assert_array_equal(result, row.reshape((-1,) + (1,) * (3 - axis)) > IMAGE)


def test_print_hands_its_input_on(tmp_path: Path) -> None:
    result = run_operator(tmp_path, "print", {"In": "x"}, {"message": "here"}, {"x": IMAGE})
    np.testing.assert_array_equal(result, IMAGE)


@pytest.mark.parametrize(("type", "shape"), [("one_hot", (3, 1)), ("one_hot_v2", (3,))])
def test_indices_out_of_range_have_no_column(
    tmp_path: Path, type: str, shape: tuple[int, ...]
) -> None:
    attributes = {"depth": 4, "dtype": 2, "allow_out_of_range": True}
    indices = np.array([3, -1, 4]).reshape(shape)
    result = run_operator(tmp_path, type, {"X": "x"}, attributes, {"x": indices})
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, [[0, 0, 0, 1], [0] * 4, [0] * 4])


def concat(folder: Path, axis: int, *parts: Array, are_open: bool = False) -> Array:
    """Concatenate tensors, of known or unknown sizes, along a computed axis."""
    names = [f"x{number}" for number in range(len(parts))]
    writer = Paddle2Writer()
    for name, part in zip(names, parts, strict=True):
        writer.input(name, "float32", [-1] * part.ndim if are_open else part.shape)
    writer.input("axis", "int32", [1])
    writer.operator("concat", {"X": names, "AxisTensor": "axis"}, {"Out": "y"}, {"axis": 0})
    writer.output("y")
    feeds = dict(zip(names, parts, strict=True)) | {"axis": np.array([axis], np.int32)}
    (result,) = outputs(load(writer.save(folder)), feeds)
    return result


@pytest.mark.parametrize("are_open", [True, False])
@pytest.mark.parametrize("axis", range(-4, 4))
def test_a_computed_axis(tmp_path: Path, axis: int, are_open: bool) -> None:
    parts = IMAGE, SECOND, IMAGE + 1
    result = concat(tmp_path, axis, *parts, are_open=are_open)
    np.testing.assert_array_equal(result, np.concatenate(parts, axis))


@pytest.mark.parametrize("are_open", [True, False])
def test_indices_along_a_computed_axis(tmp_path: Path, are_open: bool) -> None:
    for shape in ((3,), (3, 1)):
        writer = Paddle2Writer()
        writer.input("x", "float32", [-1] * IMAGE.ndim if are_open else IMAGE.shape)
        writer.input("i", "int64", shape)
        writer.input("axis", "int32", [1])
        writer.operator("gather", {"X": "x", "Index": "i", "Axis": "axis"}, {"Out": "y"}, {})
        writer.output("y")
        model = load(writer.save(tmp_path))
        indices = np.array([1, 0, 1])
        feeds = {"x": IMAGE, "i": indices.reshape(shape)}
        for axis in range(-4, 4):
            (result,) = outputs(model, feeds | {"axis": np.array([axis], np.int32)})
            np.testing.assert_array_equal(result, np.take(IMAGE, indices, axis))
        with pytest.raises(Error, match="condition"):
            outputs(model, feeds | {"axis": np.array([4], np.int32)})


def test_a_computed_axis_of_sizes_that_differ(tmp_path: Path) -> None:
    longer = np.concatenate([IMAGE, SECOND], 2)
    for axis, are_open in itertools.product((2, -2), (True, False)):
        result = concat(tmp_path, axis, IMAGE, longer, are_open=are_open)
        np.testing.assert_array_equal(result, np.concatenate([IMAGE, longer], 2))


def test_a_computed_axis_that_the_sizes_do_not_allow(tmp_path: Path) -> None:
    longer = np.concatenate([IMAGE, SECOND], 2)
    for axis, are_open in itertools.product((1, 4, -5), (True, False)):
        with pytest.raises(Error, match="condition"):
            concat(tmp_path, axis, IMAGE, longer, are_open=are_open)
    for axis in (4, -5):
        with pytest.raises(Error, match="condition"):
            concat(tmp_path, axis, IMAGE, SECOND)
    with pytest.raises(ModelFileError, match="cannot be concatenated along any axis"):
        concat(tmp_path, 1, IMAGE, longer[:, :1])
