"""Quantize and dequantize, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnxruntime import InferenceSession

import crosschip

RNG = np.random.default_rng(6)
X = (RNG.standard_normal((2, 3, 4)) * 20).astype(np.float32)
BYTES = RNG.integers(0, 255, (2, 3, 4)).astype(np.uint8)

Agree = Callable[..., None]


@pytest.mark.parametrize("zero_point", [None, np.uint8(7), np.int8(-3), np.int8(0)])
def test_quantize(agree: Agree, zero_point: object) -> None:
    agree("QuantizeLinear", X, np.float32(0.37), zero_point, opsets=[10, 13, 19, 21, 23, 26])


def test_quantize_rounds_half_to_even(agree: Agree) -> None:
    halves = np.arange(-5, 5, 0.5, dtype=np.float32)
    agree("QuantizeLinear", halves, np.float32(1), np.int8(0), opsets=[10, 26])


def test_quantize_along_an_axis(agree: Agree) -> None:
    scales = [0.1, 0.4, 2.0]
    agree("QuantizeLinear", X, scales, opsets=[13, 21, 26])
    agree("QuantizeLinear", X, [*scales, 0.7], opsets=[13, 26], axis=-1)


def test_quantize_to_a_named_type(agree: Agree) -> None:
    agree("QuantizeLinear", X, np.float32(0.37), opsets=[21, 26], output_dtype=TensorProto.INT8)
    agree("QuantizeLinear", X, np.float32(1e-3), np.uint16(30000), opsets=[21, 26])


@pytest.mark.parametrize("zero_point", [None, np.uint8(7)])
def test_dequantize(agree: Agree, zero_point: object) -> None:
    agree("DequantizeLinear", BYTES, np.float32(0.37), zero_point, opsets=[10, 13, 21, 26])
    agree("DequantizeLinear", np.uint8(200), np.float32(0.37), zero_point, opsets=[10, 13, 26])


def test_dequantize_along_an_axis(agree: Agree) -> None:
    agree("DequantizeLinear", BYTES, [0.1, 0.4, 2.0], opsets=[13, 26])
    agree("DequantizeLinear", BYTES, [0.1, 0.4, 2.0, 0.7], opsets=[13, 26], axis=-1)


def test_dequantize_to_the_type_of_the_scale(agree: Agree) -> None:
    agree("DequantizeLinear", BYTES, np.float16(0.25), np.uint8(3), opsets=[19, 26])


OPEN = """
<ir_version: 8, opset_import: ["": 18]>
quantized (float[N, C, 4] x, float[S] scale, uint8[S] zero) => (uint8[N, C, 4] q, float[N, C, 4] y)
{
    q = QuantizeLinear (x, scale, zero)
    y = DequantizeLinear (q, scale, zero)
}
"""


@pytest.mark.parametrize("size", ["S", "C"])
@pytest.mark.parametrize("device", ["reference", "onnxruntime"])
def test_scales_of_open_size(device: str, size: str) -> None:
    proto = onnx.parser.parse_model(OPEN.replace("S]", f"{size}]"))
    feed = {
        "x": X,
        "scale": np.array([0.1, 0.4, 2.0], np.float32),
        "zero": np.array([1, 2, 130], np.uint8),
    }
    session = InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, feed)
    with crosschip.compile(crosschip.load(proto), device, cache=False) as compiled:
        for found, wanted in zip(compiled.run(feed).values(), expected, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
        one = {**feed, "x": X[:, :1]}
        with pytest.raises(crosschip.Error):
            compiled.run(one)


@pytest.mark.parametrize("least", [1e-38, 1e-42, 1e-45])
def test_channels_of_hardly_any_scale(agree: Agree, least: float) -> None:
    """Tools write such scales for channels whose weights are all 0."""
    filters = RNG.integers(-127, 128, (3, 2, 1, 1)).astype(np.int8)
    filters[1] = 0
    scales = np.array([0.1, least, 0.3], np.float32)
    inputs = [np.float32(0.01), np.uint8(7), filters, scales, np.zeros(3, np.int8)]
    bias = np.array([100, 5, -70], np.int32)
    image = RNG.integers(0, 255, (1, 2, 3, 3)).astype(np.uint8)
    agree("QLinearConv", image, *inputs, np.float32(0.5), np.uint8(100), bias, opsets=[10, 21])


def test_an_infinite_scale_leaves_no_number(agree: Agree) -> None:
    """The tools calibrate masks to it, whose NaN models replace afterwards."""
    agree("QuantizeLinear", X, np.float32(np.inf), np.uint8(7), opsets=[13, 26])
    agree("DequantizeLinear", BYTES, np.float32(np.inf), np.uint8(7), opsets=[13, 26])
