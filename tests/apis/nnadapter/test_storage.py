"""Layouts and quantized integers, as NNAdapter stores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.apis.nnadapter.programs import (
    Asymmetric,
    Channel,
    Layer,
    Layout,
    Op,
    Precision,
    Type,
    add,
    compilation,
    constant,
    finish,
    float32,
    new,
    operand,
    run,
    run_once,
    types_of,
)

from crosschip.apis.nnadapter import (
    NNAdapterOperandType,
)
from crosschip.ir import Array

ORDERS = {
    Layout.NNADAPTER_NCHW: (0, 1, 2, 3),
    Layout.NNADAPTER_NHWC: (0, 2, 3, 1),
    Layout.NNADAPTER_HWCN: (2, 3, 1, 0),
    Layout.NNADAPTER_HWNC: (2, 3, 0, 1),
}


@pytest.mark.parametrize(
    ("input_layout", "filter_layout", "output_layout"),
    [
        (Layout.NNADAPTER_NHWC, Layout.NNADAPTER_HWCN, Layout.NNADAPTER_NHWC),
        (Layout.NNADAPTER_NCHW, Layout.NNADAPTER_HWNC, Layout.NNADAPTER_NHWC),
        (Layout.NNADAPTER_HWCN, Layout.NNADAPTER_NHWC, Layout.NNADAPTER_NCHW),
    ],
)
def test_layouts_are_orders_of_axes(
    input_layout: Layout, filter_layout: Layout, output_layout: Layout
) -> None:
    """A convolution of int8 images, with a scale for each channel of its filter."""
    random = np.random.default_rng(3)
    image = random.integers(-128, 128, (2, 3, 5, 6)).astype(np.int8)
    weights = random.integers(-128, 128, (4, 3, 2, 2)).astype(np.int8)
    scales = (0.01, 0.02, 0.03, 0.04)
    expected, declared = convolved(
        *(image, weights, scales),
        *([Layout.NNADAPTER_NCHW] * 3),
    )
    found, (type_,) = convolved(image, weights, scales, input_layout, filter_layout, output_layout)
    assert type_.layout is output_layout
    assert type_.dimensions.data == [(2, 4, 4, 5)[axis] for axis in ORDERS[output_layout]]
    assert type_.quantization == declared[0].quantization == Layer(0.5)
    np.testing.assert_array_equal(found, expected.transpose(ORDERS[output_layout]))
    real = reals(image, weights, scales)
    np.testing.assert_array_equal(expected, np.clip(np.rint(real / 0.5), -128, 127))


def convolved(
    image: Array,
    weights: Array,
    scales: tuple[float, ...],
    input_layout: Layout,
    filter_layout: Layout,
    output_layout: Layout,
) -> tuple[Array, list[NNAdapterOperandType]]:
    """The convolution of an image with filters, each in a layout, and the output's type."""
    model = new()
    layer, channel = (
        Precision.NNADAPTER_QUANT_INT8_SYMM_PER_LAYER,
        Precision.NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL,
    )
    laid, stored = image.transpose(ORDERS[input_layout]), weights.transpose(ORDERS[filter_layout])
    x = operand(model, Type(layer, laid.shape, Layer(0.05), layout=input_layout))
    along = ORDERS[filter_layout].index(0)
    type_ = Type(channel, stored.shape, Channel(along, scales), layout=filter_layout)
    filters = constant(model, np.ascontiguousarray(stored), type_)
    y = operand(model, Type(layer, (), Layer(0.5), layout=output_layout))
    numbers = [constant(model, n) for n in (2, [0, 0, 0, 0], [1, 1], 1, [1, 1], 0)]
    add(model, Op.NNADAPTER_CONV_2D, [x, filters, None, *numbers], y)
    made = compilation(finish(model, [x], y), "builtin_device")
    (found,) = run(made, [np.ascontiguousarray(laid)])
    inputs, outputs = types_of(made)
    assert inputs[0].layout is input_layout
    return found, outputs


def reals(image: Array, weights: Array, scales: Sequence[float]) -> Array:
    """The convolution of the reals that integers stand for."""
    x = image.astype(np.float64) * float(np.float32(0.05))
    w = weights.astype(np.float64) * np.array(scales, np.float32).astype(np.float64).reshape(
        4, 1, 1, 1
    )
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3))
    made: Array = np.einsum("nchwij,ocij->nohw", windows, w)
    return made.astype(np.float32)


@pytest.mark.parametrize(
    ("precision", "dtype", "zero"),
    [
        (Precision.NNADAPTER_QUANT_UINT8_ASYMM_PER_LAYER, np.uint8, 100),
        (Precision.NNADAPTER_QUANT_UINT16_ASYMM_PER_LAYER, np.uint16, 30000),
    ],
)
def test_asymmetric_integers(precision: Precision, dtype: Any, zero: int) -> None:
    model = new()
    x = operand(model, Type(precision, (4,), Asymmetric(0.5, zero)))
    y, z = float32(model), operand(model, Type(precision, (4,), Asymmetric(0.5, zero)))
    add(model, Op.NNADAPTER_DEQUANTIZE, [x], y)
    scale = constant(model, 0.5)
    add(model, Op.NNADAPTER_QUANTIZE, [y, constant(model, 1), scale, constant(model, zero)], z)
    finish(model, [x], y, z)
    stored = np.array([zero, zero + 1, zero + 50, zero - 3], dtype)
    found, back = run_once(model, [stored])
    np.testing.assert_array_equal(found, np.array([0, 0.5, 25, -1.5], np.float32))
    np.testing.assert_array_equal(back, stored)
