"""Activations of integers."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.quantized import limits
from crosschip.ops.fixed_point import EIGHT_BITS, INTEGERS, fixed_point
from crosschip.ops.fixed_point.exponential import exponential
from crosschip.ops.fixed_point.newton import bit_length, reciprocal
from crosschip.ops.fixed_point.rescaling import (
    Factor,
    centered,
    factor,
    high_product,
    integer_bounds,
    offset,
    rescaled,
    scale_of,
    shifted_right,
)
from crosschip.ops.standard.activation import HardSwish, LeakyRelu, PRelu, Relu, Relu6, Softmax
from crosschip.ops.standard.arithmetic import Clip


def _factor(operation: Operator) -> Factor:
    """Return the factor from the input's scale to the output's, whose quotient is a float32."""
    return factor(scale_of(operation, "input") / scale_of(operation))


@fixed_point(Relu, INTEGERS)
def relu(operation: Relu, input: Array) -> Array:
    return _bounded(operation, input, (0.0, np.inf))


@fixed_point(Relu6, INTEGERS)
def relu6(operation: Relu6, input: Array) -> Array:
    return _bounded(operation, input, (0.0, 6.0))


@fixed_point(Clip, INTEGERS | {ElementType.INT32})
def clip(operation: Clip, input: Array) -> Array:
    return _bounded(operation, input, (operation.min, operation.max))


def _bounded(operation: Operator, input: Array, bounds: tuple[float, float]) -> Array:
    """Rescale, and clamp to the integers of the bounds."""
    least, greatest = integer_bounds(operation, bounds)
    integers = rescaled(centered(operation, "input", input), _factor(operation))
    return np.minimum(np.maximum(offset(operation, integers), least), greatest)


@fixed_point(LeakyRelu, INTEGERS)
def leaky_relu(operation: LeakyRelu, input: Array) -> Array:
    integers = centered(operation, "input", input)
    slope = scale_of(operation, "input") * np.float32(operation.alpha) / scale_of(operation)
    negative = np.sign(slope).astype(np.int64) * rescaled(integers, factor(abs(slope)))
    positive = rescaled(integers, _factor(operation))
    return offset(operation, np.where(integers >= 0, positive, negative))


@fixed_point(PRelu, INTEGERS)
def prelu(operation: PRelu, input: Array, slope: Array) -> Array:
    integers, slopes = centered(operation, "input", input), centered(operation, "slope", slope)
    if slopes.ndim == 1:  # one for each channel
        slopes = slopes.reshape(-1, *(1,) * max(0, integers.ndim - 2))
    by, slope_by = slope_factors(operation)
    negative, positive = rescaled(integers * slopes, slope_by), rescaled(integers, by)
    return offset(operation, np.where(integers >= 0, positive, negative))


def slope_factors(operation: PRelu) -> tuple[Factor, Factor]:
    """Return the factors of integers that are not negative, and of the others times slopes."""
    scale = scale_of(operation, "input") * scale_of(operation, "slope") / scale_of(operation)
    return _factor(operation), factor(scale)


@fixed_point(HardSwish, EIGHT_BITS)
def hard_swish(operation: HardSwish, input: Array) -> Array:
    """Multiply the input by a gate from 0 to 1, both with 15 bits after the binary point."""
    fine = centered(operation, "input", input) << 7
    scale = np.float32(1 / 128) * scale_of(operation, "input")
    output = factor(scale / scale_of(operation))
    gate = factor(scale / np.float32(3 / 32768))
    shift = int(gate.shift)
    opened = _saturated(fine << max(0, shift - 1))
    opened = high_product(opened, _short(gate), bits=15)
    opened = _saturated(opened << 1) if shift > 0 else shifted_right(opened, -shift)
    opened = (opened + (1 << 15)) >> 1
    product = opened * high_product(fine, _short(output), bits=15)
    truncated = np.sign(product) * (np.abs(product) >> 15)
    return offset(operation, shifted_right(truncated, -output.shift))


def _short(by: Factor) -> Array:
    """Return a multiplier of 31 bits rounded to 15 bits."""
    return np.minimum((by.multiplier + (1 << 15)) >> 16, 0x7FFF)


def _saturated(integers: Array) -> Array:
    return np.clip(integers, -(1 << 15), (1 << 15) - 1)


_INTEGER_BITS = 5
"""The bits before the binary point of differences of SOFTMAX; 26 are after it."""


@fixed_point(Softmax, EIGHT_BITS)
def softmax(operation: Softmax, input: Array) -> Array:
    """Divide powers by their sum, with 31 and 19 bits after the binary point."""
    least, _ = limits(operation.outputs[0].type.element_type)
    integers = np.moveaxis(input.astype(np.int64), operation.axis, -1)
    powers = softmax_powers(operation, integers - integers.max(axis=-1, keepdims=True))
    total = shifted_right(powers, 12).sum(axis=-1, keepdims=True)
    # The sum is `(1 + rest) * 2**bits`, with at least one power of about 1.
    length = bit_length(total)
    rest = (total << (32 - length)) - (1 << 31)
    quotients = high_product(reciprocal(rest), powers)
    steps = np.minimum(shifted_right(quotients, length - 20 + 31 - 8), 255)
    return np.moveaxis(steps + least, -1, operation.axis)


def softmax_powers(operation: Softmax, differences: Array) -> Array:
    """Return exp of integers less the greatest, 31 bits after the binary point; 0 of far ones."""
    scale = np.float64(scale_of(operation, "input")) * 2.0 ** (31 - _INTEGER_BITS)
    by = factor(min(scale, 2.0**31 - 1))
    radius = np.floor(31 * 2.0 ** (31 - _INTEGER_BITS) / 2.0 ** float(by.shift))
    is_near = differences >= -radius
    shifted = rescaled(np.where(is_near, differences, 0), by)
    return np.where(is_near, exponential(shifted, _INTEGER_BITS), 0)
