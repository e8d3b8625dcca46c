"""Quantized results, bit by bit those of exact fractions rounded to even."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from crosschip.devices.tosa import TosaDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, Model, Quantization, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.pooling import AveragePool2D
from crosschip.ops.standard.quantization import Quantize
from crosschip.ops.standard.reduction import ReduceMean

INT8 = ElementType.INT8


def _quantized(sums: Array, ratio: Fraction, zero: int) -> Array:
    exact = {total: round(total * ratio) + zero for total in map(int, np.unique(sums))}
    steps = np.array([exact[int(total)] for total in sums.flat]).reshape(sums.shape)
    return np.asarray(steps.clip(-128, 127).astype(np.int8))


def _model(operator: type[Operator], shape: tuple[int, ...], scale: float, **slots: Any) -> Model:
    b = Builder("rounding")
    x = b.input("x", TensorType(INT8, shape, Quantization((0.5,), (3,))))
    b.output("y", b.add(operator, x, **slots, quantization=Quantization((scale,), (-5,))))
    return b.build()


@pytest.mark.parametrize("count", [3, 6, 12, 24])
@pytest.mark.parametrize("scale", [0.25, 0.5])
def test_means_round_ties_to_even(device: TosaDevice, count: int, scale: float) -> None:
    x = np.random.default_rng(count).integers(-128, 128, (4000, count)).astype(np.int8)
    program = device.compile(_model(ReduceMean, x.shape, scale, axes=(1,)), Options())
    (result,) = program.run([x])
    sums = (x.astype(int) - 3).sum(1, keepdims=True)
    expected = _quantized(sums, Fraction(0.5) / Fraction(scale) / count, -5)
    np.testing.assert_array_equal(result.ravel(), expected.ravel())


def test_a_layer_rounds_ties_of_each_unit_to_even(device: TosaDevice) -> None:
    """Ratios of 1/12, 1/8 and 5/48: the first and the last have ties that no multiplier has."""
    scales = (1 / 2, 3 / 4, 5 / 8)
    random = np.random.default_rng(2)
    weights = random.integers(-2, 3, (3, 16)).astype(np.int8)
    b = Builder("layer")
    x = b.input("x", TensorType(INT8, (4000, 16), Quantization((0.5,))))
    units = b.constant(weights, quantization=Quantization(scales, axis=0))
    b.output("y", b.add(FullyConnected, x, units, quantization=Quantization((3.0,), (0,))))
    array = random.integers(-20, 20, (4000, 16)).astype(np.int8)
    program = device.compile(b.build(), Options())
    (result,) = program.run([array])
    sums = array.astype(int) @ weights.T.astype(int)
    for unit, scale in enumerate(scales):
        ratio = Fraction(0.5) * Fraction(scale) / 3
        np.testing.assert_array_equal(result[:, unit], _quantized(sums[:, unit], ratio, 0))


def test_a_window_without_pixels_is_the_least_integer(device: TosaDevice) -> None:
    model = _model(AveragePool2D, (1, 1, 2, 2), 0.5, kernel_shape=(1, 1), pads=(1, 0, 0, 0))
    program = device.compile(model, Options())
    (result,) = program.run([np.full((1, 1, 2, 2), 8, np.int8)])
    np.testing.assert_array_equal(result[0, 0], [[-128, -128], [0, 0], [0, 0]])


@pytest.mark.parametrize("zero", [100, -100])
def test_reals_beyond_int32_are_its_ends(device: TosaDevice, zero: int) -> None:
    b = Builder("ends")
    x = np.array([np.inf, -np.inf, np.nan, 1e9, -1e9, 0.5, 2e6], np.float32)
    scale, point = np.array([0.05], np.float32), np.array([zero], np.float32)
    steps = b.input("x", TensorType(ElementType.FLOAT32, x.shape))
    b.output("y", b.add(Quantize, steps, None, scale, point, ElementType.INT32))
    (result,) = device.compile(b.build(), Options()).run([x])
    low, high = -(2**31), 2**31 - 1
    expected = [high, low, low, high, low, 10 + zero, 40_000_000 + zero]
    np.testing.assert_array_equal(result, expected)
