"""Quantized programs of Paddle: operators compared with formulas, and a whole network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.paddle.helpers import normal, outputs
from tests.importers.paddle.writers import Floats, Paddle2Writer, Paddle3Writer, tensor_type

import crosschip
from crosschip.importers import load
from crosschip.ir import Array, UnsupportedError

X = normal(3, 2, 4, 6)
WEIGHT = normal(4, 4, 6)
CHANNELS = np.array([1.0, 2.0, 0.5, 3.0], np.float32)
TWO = np.array([2.0], np.float32)
ZERO = np.zeros(1, np.float32)


def quantize(x: Array, scale: Any) -> Array:
    return np.asarray(np.clip(np.rint(x / scale * 127), -128, 127))


def expand_scales(scale: Array, axis: int, rank: int) -> Array:
    return scale.reshape((-1,) + (1,) * (rank - 1 - axis))


OperatorCase = tuple[str, dict[str, str], dict[str, Any], str]


def run_operator(
    folder: Path,
    case: OperatorCase,
    inputs: Mapping[str, Array],
    parameters: Mapping[str, Array],
) -> Array:
    """Return the only output of a program with one operator."""
    type_, slots, attributes, output = case
    writer = Paddle2Writer()
    for name, array in inputs.items():
        writer.input(name, str(array.dtype), array.shape)
    for name, array in parameters.items():
        writer.parameter(name, array)
    writer.operator(type_, slots, {output: "made"}, attributes)
    writer.output("made")
    (result,) = outputs(load(writer.save(folder)), inputs)
    return result


LINEAR = {"X": "x", "Scale": "scale", "ZeroPoint": "zero"}
MOVING = {"X": "x", "InScale": "scale"}
TESTING = {"bit_length": 8, "is_test": True}
ONE = 1 / 127 * 1.01

CASES: dict[str, tuple[OperatorCase, dict[str, Array], Callable[[Array], Array], float]] = {
    "quantize_linear": (
        ("quantize_linear", LINEAR, {"quant_axis": -1, **TESTING}, "Y"),
        {"scale": TWO, "zero": ZERO},
        lambda x: quantize(x, 2.0),
        1,
    ),
    "quantize_linear by channel": (
        ("quantize_linear", LINEAR, {"quant_axis": 1, **TESTING}, "Y"),
        {"scale": CHANNELS, "zero": np.zeros(4, np.float32)},
        lambda x: quantize(x, expand_scales(CHANNELS, 1, 3)),
        1,
    ),
    "fake_quantize_moving_average_abs_max": (
        ("fake_quantize_moving_average_abs_max", MOVING, TESTING, "Out"),
        {"scale": TWO},
        lambda x: quantize(np.clip(x, -2, 2), 2.0),
        1,
    ),
    "fake_quantize_range_abs_max": (
        ("fake_quantize_range_abs_max", MOVING, TESTING, "Out"),
        {"scale": TWO},
        lambda x: quantize(np.clip(x, -2, 2), 2.0),
        1,
    ),
    "fake_quantize_dequantize_moving_average_abs_max": (
        ("fake_quantize_dequantize_moving_average_abs_max", MOVING, TESTING, "Out"),
        {"scale": TWO},
        lambda x: quantize(np.clip(x, -2, 2), 2.0) * 2 / 127,
        2 * ONE,
    ),
    "fake_quantize_abs_max": (
        ("fake_quantize_abs_max", {"X": "x"}, {"bit_length": 8}, "Out"),
        {},
        lambda x: quantize(x, np.abs(x).max()),
        1,
    ),
    "fake_quantize_dequantize_abs_max": (
        ("fake_quantize_dequantize_abs_max", {"X": "x"}, {"bit_length": 8}, "Out"),
        {},
        lambda x: quantize(x, np.abs(x).max()) * np.abs(x).max() / 127,
        3 * ONE,
    ),
    "fake_channel_wise_quantize_abs_max": (
        ("fake_channel_wise_quantize_abs_max", {"X": "x"}, {"quant_axis": 1}, "Out"),
        {},
        lambda x: quantize(x, np.abs(x).max((0, 2), keepdims=True)),
        1,
    ),
    "fake_channel_wise_quantize_dequantize_abs_max": (
        ("fake_channel_wise_quantize_dequantize_abs_max", {"X": "x"}, {"quant_axis": 1}, "Out"),
        {},
        lambda x: (
            quantize(x, np.abs(x).max((0, 2), keepdims=True))
            * np.abs(x).max((0, 2), keepdims=True)
            / 127
        ),
        3 * ONE,
    ),
    "fake_dequantize_max_abs": (
        ("fake_dequantize_max_abs", {"X": "x", "Scale": "scale"}, {"max_range": 127.0}, "Out"),
        {"scale": TWO},
        lambda x: x * 2 / 127,
        1e-6,
    ),
    "fake_channel_wise_dequantize_max_abs": (
        (
            "fake_channel_wise_dequantize_max_abs",
            {"X": "x", "Scales": "scale"},
            {"quant_bits": [8], "quant_axis": 1},
            "Out",
        ),
        {"scale": CHANNELS},
        lambda x: x * expand_scales(CHANNELS, 1, 3) / 127,
        1e-6,
    ),
    "moving_average_abs_max_scale": (
        ("moving_average_abs_max_scale", {"X": "x"}, {"is_test": True}, "Out"),
        {},
        lambda x: x,
        0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_as_the_formula(tmp_path: Path, case: str) -> None:
    operator, parameters, formula, step = CASES[case]
    result = run_operator(tmp_path, operator, {"x": X}, parameters)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, formula(X), rtol=1e-6, atol=step)
    differs = np.abs(result - formula(X)) > 1e-6
    assert differs[np.abs(X) < 2].mean() < 0.05  # values beyond the scale may differ by one


POSITIONS = {
    "quantize_linear": ("X", "Scale", "ZeroPoint", "", ""),
    "fake_quantize_moving_average_abs_max": ("X", "InScale", "", ""),
    "fake_quantize_dequantize_moving_average_abs_max": ("X", "InScale", "", ""),
    "fake_quantize_range_abs_max": ("X", "InScale", ""),
    "fake_dequantize_max_abs": ("X", "Scale"),
    "fake_channel_wise_dequantize_max_abs": ("X", "Scales"),
}
"""The inputs of Paddle 3's operators, as Paddle 3.3.1 writes them; of the others there is one."""


@pytest.mark.parametrize("case", [case for case in CASES if case != "moving_average_abs_max_scale"])
def test_in_the_form_of_paddle_3(tmp_path: Path, case: str) -> None:
    (type_, slots, attributes, _), parameters, formula, step = CASES[case]
    writer = Paddle3Writer()
    numbers = {"x": writer.input("x", "float32", X.shape)}
    numbers |= {name: writer.parameter(name, array) for name, array in parameters.items()}
    if "Scales" in slots:
        numbers["scale"] = writer.combine([numbers["scale"]])
    slot_order = POSITIONS.get(type_, ("X",))
    inputs = [numbers[slots[slot]] if slot in slots else 0 for slot in slot_order]
    output = writer.operator(f"1.{type_}", inputs, attributes, [tensor_type("float32", X.shape)])
    writer.output(output)
    (result,) = outputs(load(writer.save(tmp_path)), {"x": X})
    np.testing.assert_allclose(result, formula(X), rtol=1e-6, atol=step)


@pytest.mark.parametrize("type_", ["quantize_linear", "dequantize_linear"])
def test_an_operator_that_only_observes_changes_nothing(type_: str, tmp_path: Path) -> None:
    operator = (type_, LINEAR, {"quant_axis": -1, "only_observer": True, **TESTING}, "Y")
    np.testing.assert_array_equal(
        run_operator(tmp_path, operator, {"x": X}, {"scale": TWO, "zero": ZERO}), X
    )


def test_scales_in_attributes(tmp_path: Path) -> None:
    """A program of Paddle Lite's tools, with two integer layers and a float layer."""
    random = np.random.default_rng(6)
    image = random.normal(size=(1, 3, 6, 6)).astype(np.float32)
    filters = random.integers(-127, 128, (4, 3, 1, 1)).astype(np.int8)
    scales = [0.01, 0.02, 0.005, 0.03]
    writer = Paddle2Writer()
    writer.input("x", "float32", image.shape)
    writer.parameter("filters", filters)
    settings = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1}
    scale_attributes = {
        "Input0_scale": Floats([0.02]),
        "Filter0_scale": Floats(scales),
        "Output0_scale": Floats([0.1]),
    }
    slots = {"Input": "x", "Filter": "filters"}
    named = {**settings, "enable_int8": True, **scale_attributes}
    writer.operator("conv2d", slots, {"Output": "y"}, named)
    rest = {"enable_int8": True, "X0_scale": Floats([0.1]), "Out0_scale": Floats([0.05])}
    writer.operator("relu", {"X": "y"}, {"Out": "z"}, rest)
    writer.operator("tanh", {"X": "z"}, {"Out": "made"}, {})
    writer.output("made")
    model = load(writer.save(tmp_path))

    def quantize_dequantize(reals: Array, scale: float) -> Array:
        return np.asarray(np.clip(np.rint(reals / scale), -128, 127) * scale)

    weights = filters[:, :, 0, 0] * expand_scales(np.array(scales), 0, 2)
    products = np.einsum("oc,bchw->bohw", weights, quantize_dequantize(image, 0.02))
    expected = np.tanh(quantize_dequantize(np.maximum(quantize_dequantize(products, 0.1), 0), 0.05))
    kinds = [operation.type for operation in model.operations]
    assert (kinds.count("QUANTIZE"), kinds.count("DEQUANTIZE")) == (3, 4)
    for device in ("reference", "onnxruntime", "openvino"):
        with crosschip.compile(model, device, cache=False) as compiled:
            np.testing.assert_allclose(compiled(image), expected, atol=0.1)


@pytest.mark.parametrize("case", [case for case in CASES if "abs_max" in case and "fake_q" in case])
def test_weights_are_quantized_once(tmp_path: Path, case: str) -> None:
    """Constants are rounded like computed tensors."""
    (type_, slots, attributes, output), parameters, formula, step = CASES[case]
    writer = Paddle2Writer()
    writer.input("y", "float32", WEIGHT.shape)
    for name, array in {"x": WEIGHT, **parameters}.items():
        writer.parameter(name, array)
    writer.operator(type_, slots, {output: "made"}, attributes)
    writer.operator("elementwise_add", {"X": "y", "Y": "made"}, {"Out": "sum"}, {})
    writer.output("sum")
    (result,) = outputs(load(writer.save(tmp_path)), {"y": np.zeros_like(WEIGHT)})
    np.testing.assert_allclose(result, formula(WEIGHT), rtol=1e-6, atol=step)


def test_a_quantized_convolution_is_one_of_integers(tmp_path: Path) -> None:
    """A program as PaddleSlim exports it; all devices are within one step of the formula."""
    random = np.random.default_rng(5)
    image = random.normal(size=(1, 3, 6, 6)).astype(np.float32)
    filters = random.integers(-127, 128, (4, 3, 1, 1)).astype(np.int8)
    writer = Paddle2Writer()
    writer.input("x", "float32", image.shape)
    parameters: dict[str, Array] = {
        "scale": TWO,
        "zero": ZERO,
        "filters": filters,
        "scales": CHANNELS,
        "zeros": np.zeros(4, np.float32),
        "end": np.array([9.0], np.float32),
    }
    for name, array in parameters.items():
        writer.parameter(name, array)
    linear = {"quant_axis": -1, **TESTING}
    writer.operator("quantize_linear", LINEAR, {"Y": "q"}, linear)
    writer.operator("dequantize_linear", {**LINEAR, "X": "q"}, {"Y": "image"}, linear)
    weights = {"X": "filters", "Scale": "scales", "ZeroPoint": "zeros"}
    writer.operator("dequantize_linear", weights, {"Y": "w"}, {"quant_axis": 0, **TESTING})
    settings = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1}
    writer.operator("conv2d", {"Input": "image", "Filter": "w"}, {"Output": "y"}, settings)
    last = {"X": "y", "Scale": "end", "ZeroPoint": "zero"}
    writer.operator("quantize_linear", last, {"Y": "r"}, linear)
    writer.operator("dequantize_linear", {**last, "X": "r"}, {"Y": "made"}, linear)
    writer.output("made")
    model = load(writer.save(tmp_path))
    reals = quantize(image, 2.0) * 2 / 127
    weighted = filters[:, :, 0, 0] * expand_scales(CHANNELS, 0, 2) / 127
    expected = quantize(np.einsum("oc,bchw->bohw", weighted, reals), 9.0) * 9 / 127
    for device in ("reference", "onnxruntime", "openvino"):
        with crosschip.compile(model, device, cache=False) as compiled:
            np.testing.assert_allclose(compiled(image), expected, atol=9 * ONE)
            types = [operation.type for operation in compiled.placement.model.operations]
            assert sorted(types) == ["CONV_2D", *["DEQUANTIZE"] * 3, *["QUANTIZE"] * 2]


@pytest.mark.parametrize(
    ("parameters", "attributes", "message"),
    [
        ({"scale": TWO, "zero": np.ones(1, np.float32)}, {}, "ZeroPoint: must be constant, and 0"),
        ({"scale": TWO, "zero": ZERO}, {"bit_length": 5}, "integers of 5 bits"),
    ],
)
def test_what_cannot_be_expressed(
    tmp_path: Path, parameters: dict[str, Array], attributes: dict[str, Any], message: str
) -> None:
    operator = ("quantize_linear", LINEAR, {"quant_axis": -1, **TESTING, **attributes}, "Y")
    with pytest.raises(UnsupportedError, match=message):
        run_operator(tmp_path, operator, {"x": X}, parameters)
