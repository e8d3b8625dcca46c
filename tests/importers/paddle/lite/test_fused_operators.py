"""The operators that Paddle Lite's optimizer creates, compared with formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from tests.importers.paddle.helpers import outputs
from tests.importers.paddle.lite import naive_writer
from tests.importers.paddle.writers import Floats, Paddle2Writer

from crosschip.importers import load
from crosschip.ir import Array, ModelFileError, UnsupportedError

X = np.linspace(-9, 9, 2 * 3, dtype=np.float32).reshape(1, 2, 1, 3)
Formula = Callable[[Array], Array]


def run_operator(
    type: str,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, str],
    parameters: Mapping[str, Array],
    output: str = "Out",
    x: Array = X,
) -> Array:
    """Return the output for X of a Paddle Lite model with one operator."""
    writer = Paddle2Writer()
    writer.input("x", str(x.dtype), [-1, *x.shape[1:]])
    for name, value in parameters.items():
        writer.parameter(name, value)
    writer.variable("y", "float32", [-1])
    writer.operator(type, inputs, {output: "y"}, attributes)
    writer.output("y")
    (result,) = outputs(load(naive_writer.file(writer)), {"x": x})
    return result


def sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


ACTIVATIONS: Mapping[str, tuple[Mapping[str, Any], Formula]] = {
    "relu": ({}, lambda x: np.maximum(x, 0)),
    "relu6": ({"fuse_brelu_threshold": 5.0}, lambda x: np.clip(x, 0, 5)),
    "sigmoid": ({}, sigmoid),
    "tanh": ({}, np.tanh),
    "abs": ({}, np.abs),
    "swish": ({"swish_scale": 0.5}, lambda x: x * sigmoid(0.5 * x)),
    "leaky_relu": ({"leaky_relu_alpha": 0.25}, lambda x: np.where(x > 0, x, x * 0.25)),
    "hard_swish": (
        {"hard_swish_threshold": 5.0, "hard_swish_scale": 4.0, "hard_swish_offset": 2.0},
        lambda x: x * np.clip(x + 2, 0, 5) / 4,
    ),
    "hard_sigmoid": ({"slope": 0.25, "offset": 0.5}, lambda x: np.clip(x / 4 + 0.5, 0, 1)),
}
CONVOLUTION = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1}
EYE = np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_convolution_with_an_activation(name: str) -> None:
    attributes, formula = ACTIVATIONS[name]
    attributes = {**CONVOLUTION, "with_act": True, "act_type": name, **attributes}
    slots = {"Input": "x", "Filter": "w"}
    result = run_operator("conv2d", attributes, slots, {"w": EYE}, "Output")
    np.testing.assert_allclose(result, formula(X), rtol=1e-5, atol=1e-6)


def test_a_convolution_with_relu_as_old_versions_write_it() -> None:
    attributes = {**CONVOLUTION, "fuse_relu": True}
    result = run_operator("conv2d", attributes, {"Input": "x", "Filter": "w"}, {"w": EYE}, "Output")
    np.testing.assert_allclose(result, np.maximum(X, 0))


def test_a_convolution_with_a_slope_for_each_channel() -> None:
    attributes = {**CONVOLUTION, "with_act": True, "act_type": "prelu", "prelu_mode": "channel"}
    slope = np.array([0.5, 0.25], np.float32)
    slots = {"Input": "x", "Filter": "w", "Prelu_alpha": "a"}
    result = run_operator("conv2d", attributes, slots, {"w": EYE, "a": slope}, "Output")
    np.testing.assert_allclose(result, np.where(X > 0, X, X * slope.reshape(2, 1, 1)))


def test_a_convolution_to_which_something_is_added() -> None:
    attributes = {**CONVOLUTION, "with_act": True, "act_type": "relu"}
    slots = {"Input": "x", "Filter": "w", "ResidualData": "r"}
    residual = np.full((1, 2, 1, 3), 4, np.float32)
    result = run_operator("conv2d", attributes, slots, {"w": EYE, "r": residual}, "Output")
    np.testing.assert_allclose(result, np.maximum(X + 4, 0))


@pytest.mark.parametrize(
    ("attributes", "formula"),
    [
        ({"activation_type": "relu"}, lambda x: np.maximum(x, 0)),
        ({"activation_type": "relu6", "alpha": 6.0}, lambda x: np.clip(x, 0, 6)),
        ({"activation_type": ""}, lambda x: x),
    ],
)
@pytest.mark.parametrize("kind", ["mul", "matmul", "matmul_v2"])
@pytest.mark.parametrize("biased", [True, False])
def test_a_matrix_product_with_a_bias_and_an_activation(
    attributes: Mapping[str, Any], formula: Formula, kind: str, biased: bool
) -> None:
    weights = np.arange(6, dtype=np.float32).reshape(3, 2) - 2
    bias = np.array([1, -5], np.float32)
    rank = 3 if kind == "mul" else 1
    slots = {"Input": "x", "W": "w", **({"Bias": "b"} if biased else {})}
    settings = {"op_type": kind, "in_num_col_dims": rank, **attributes}
    parameters = {"w": weights, **({"b": bias} if biased else {})}
    result = run_operator("fc", settings, slots, parameters)
    np.testing.assert_allclose(result, formula(X @ weights + (bias if biased else 0)), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "formula"),
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide),
     ("max", np.maximum), ("min", np.minimum)],
)  # fmt: skip
@pytest.mark.parametrize("activation", ["relu", "tanh", ""])
def test_arithmetic_with_an_activation(name: str, formula: Any, activation: str) -> None:
    other = np.array([2, -3], np.float32)
    type = f"fusion_elementwise_{name}_activation"
    result = run_operator(
        type, {"axis": 1, "act_type": activation}, {"X": "x", "Y": "o"}, {"o": other}
    )
    expected = formula(X, other.reshape(2, 1, 1))
    if activation:
        expected = ACTIVATIONS[activation][1](expected)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("activation", "attributes", "formula"),
    [
        ("relu", {}, lambda x: np.maximum(x, 0)),
        ("relu6", {"alpha": 6.0}, lambda x: np.clip(x, 0, 6)),
        ("leaky_relu", {"alpha": 0.5}, lambda x: np.where(x > 0, x, x * 0.5)),
        ("", {}, lambda x: x),
    ],
)
def test_a_scale_with_an_activation(
    activation: str, attributes: Mapping[str, Any], formula: Formula
) -> None:
    settings = {
        "scale": 2.0,
        "bias": 1.0,
        "bias_after_scale": True,
        "activation_type": activation,
    }
    result = run_operator("scale", {**settings, **attributes}, {"X": "x"}, {})
    np.testing.assert_allclose(result, formula(X * 2 + 1), rtol=1e-6)


@pytest.mark.parametrize(
    ("type", "attributes", "formula"),
    [
        (
            "scale",
            {"scale": 2.0, "bias": 1.0, "activation_type": "relu6", "alpha": 6.0,
             "fuse_scaleact": True, "scale1": 0.5, "bias1": -3.0},
            lambda x: np.clip(x * 2 + 1, 0, 6) * 0.5 - 3,
        ),
        (
            "elementwise_mul",
            {"axis": -1, "fuse_scale": True, "scale": 0.5, "bias": 1.0, "alpha": 6.0,
             "activation_type": "relu6"},
            lambda x: np.clip(x * 4 * 0.5 + 1, 0, 6),
        ),
        (
            "greater_than",
            {"axis": -1, "fuse_greater_than": True},
            lambda x: (x > 4).astype(np.float32),
        ),
    ],
)  # fmt: skip
def test_what_opencl_kernels_do_besides(
    type: str, attributes: Mapping[str, Any], formula: Formula
) -> None:
    slots = {"X": "x", **({} if type == "scale" else {"Y": "o"})}
    result = run_operator(
        type, {"bias_after_scale": True, **attributes}, slots, {"o": np.array([4], np.float32)}
    )
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, formula(X), rtol=1e-6)


def test_a_normalization_with_an_activation() -> None:
    ones, zeros = np.ones(2, np.float32), np.zeros(2, np.float32)
    slots = {"X": "x", "Scale": "s", "Bias": "b"}
    attributes = {"epsilon": 1e-5, "activation_type": "relu", "fuse_relu": True}
    result = run_operator("instance_norm", attributes, slots, {"s": ones, "b": zeros}, "Y")
    centred = X - X.mean((2, 3), keepdims=True)
    expected = centred / np.sqrt(X.var((2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(result, np.maximum(expected, 0), rtol=1e-4)


WEIGHTS = np.array([[100, -50], [3, 7], [-128, 127]])


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("kind", ["mul", "matmul_v2"])
@pytest.mark.parametrize("scale", [[0.5, 0.25], [0.125], [0.5, 0.0]])
def test_weights_are_reals_by_the_scales_in_attributes(
    bits: int, kind: str, scale: list[float]
) -> None:
    weights, bias = WEIGHTS.astype(f"int{bits}"), np.array([8, -4], f"int{bits}")
    attributes = {
        "op_type": kind, "in_num_col_dims": 3 if kind == "mul" else 1,
        "quantize_weight_bits": bits, "quantization_type": "post_weight_channel_wise_abs_max",
        "w_quant_scale": Floats(scale), "b_quant_scale": Floats([0.5, 2.0]),
    }  # fmt: skip
    slots = {"Input": "x", "W": "w", "Bias": "b"}
    result = run_operator("fc", attributes, slots, {"w": weights, "b": bias})
    expected = X @ (WEIGHTS * np.array(scale, np.float32)) + np.array([4, -8], np.float32)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


def test_as_many_scales_as_a_weight_has_not_are_refused() -> None:
    attributes = {"quantize_weight_bits": 8, "w_quant_scale": Floats([1, 2, 3])}
    slots = {"Input": "x", "W": "w"}
    with pytest.raises(ModelFileError, match=r"fc\): w_quant_scale: has 3 scales for int8\[3, 2\]"):
        run_operator(
            "fc", {"op_type": "matmul", **attributes}, slots, {"w": WEIGHTS.astype(np.int8)}
        )


def quantize_dequantize(x: Array, scale: float) -> Array:
    return np.asarray(np.clip(np.rint(x / scale), -128, 127) * np.float32(scale))


@pytest.mark.parametrize("kernel", ["int8_out", "fp32_out"])
@pytest.mark.parametrize("activation", ["hard_swish", ""])
def test_a_kernel_that_makes_integers_rounds_behind_its_activation(
    kernel: str, activation: str
) -> None:
    attributes = {
        **CONVOLUTION, "with_act": bool(activation), "act_type": activation,
        "hard_swish_threshold": 6.0, "hard_swish_scale": 6.0, "hard_swish_offset": 3.0,
        "enable_int8": True, "Input0_scale": Floats([0.1]), "Filter0_scale": Floats([0.5, 0.25]),
        "Output0_scale": Floats([0.75]), "__@kernel_type_attr@__": f"conv2d/{kernel}/4/2/1",
    }  # fmt: skip
    weights = np.array([[2, 1], [-4, 3]], np.int8).reshape(2, 2, 1, 1)
    writer = Paddle2Writer()
    writer.input("x", "float32", [-1, *X.shape[1:]])
    writer.parameter("w", weights)
    for name in ("xq", "conv", "y"):
        writer.variable(name, "float32", [-1])
    down = {"scale": 0.1, "__@kernel_type_attr@__": "calib/fp32_to_int8/4/2/1"}
    up = {"scale": 0.75, "__@kernel_type_attr@__": "calib/int8_to_fp32/4/2/1"}
    writer.operator("calib", {"Input": "x"}, {"Out": "xq"}, down)
    writer.operator("conv2d", {"Input": "xq", "Filter": "w"}, {"Output": "conv"}, attributes)
    if kernel == "int8_out":
        writer.operator("calib", {"Input": "conv"}, {"Out": "y"}, up)
    writer.output("y" if kernel == "int8_out" else "conv")
    (result,) = outputs(load(naive_writer.file(writer)), {"x": X})
    reals = np.array([[1, 0.5], [-1, 0.75]], np.float32)
    expected = np.einsum("oi,nihw->nohw", reals, quantize_dequantize(X, 0.1))
    if activation:
        expected = expected * np.clip(expected + 3, 0, 6) / 6
    expected = quantize_dequantize(expected, 0.75) if kernel == "int8_out" else expected
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("type", ["io_copy", "io_copy_once", "layout", "layout_once"])
def test_a_copy_changes_nothing(type: str) -> None:
    np.testing.assert_array_equal(run_operator(type, {"process_type": 1}, {"Input": "x"}, {}), X)


def test_a_conversion_is_what_the_kernel_is_called() -> None:
    kernel = {"__@kernel_type_attr@__": "calib/int64_to_int32/4/2/1"}
    result = run_operator("calib", kernel, {"Input": "x"}, {}, x=np.array([[1, -2]], np.int64))
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, [[1, -2]])


@pytest.mark.parametrize(
    ("type", "attributes", "why"),
    [
        ("conv2d", {"with_act": True, "act_type": "nothing"}, "the activation 'nothing'"),
        ("conv2d", {"fuse_elementwise_op_type": "elementwise_add"}, "fuse_elementwise_op_type"),
        ("conv2d", {"scale_activation_type": "relu"}, "scale_activation_type"),
        ("scale", {"activation_type": "hard_swish"}, "hard_swish"),
        ("__xpu__resnet50", {}, "__xpu__resnet50"),
        ("subgraph", {}, "subgraph"),
    ],
)
def test_what_cannot_be_expressed_is_refused(
    type: str, attributes: Mapping[str, Any], why: str
) -> None:
    output = "Output" if type == "conv2d" else "Out"
    slots = {"Input": "x", "Filter": "w"} if type == "conv2d" else {"X": "x"}
    with pytest.raises(UnsupportedError, match=why):
        run_operator(type, {**CONVOLUTION, **attributes}, slots, {"w": EYE}, output)


@pytest.mark.parametrize(
    ("type", "inputs", "output", "why"),
    [
        ("io_copy", {"X": "x"}, "Out", "has no 'Input'"),
        ("conv2d", {"Input": "x", "Filter": "w"}, "Out", "has no 'Output'"),
        ("fc", {"Input": "x", "W": "w"}, "Output", "has no 'Out'"),
    ],
)
def test_an_operator_that_lacks_a_slot_is_refused(
    type: str, inputs: Mapping[str, str], output: str, why: str
) -> None:
    with pytest.raises(ModelFileError, match=why):
        run_operator(type, {}, inputs, {"w": EYE}, output)
