"""LOGISTIC and TANH of integers.

Those of 8 bits are rounded from float32; those of 16 bits are interpolated in a table.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.operator import Operator
from crosschip.ops.fixed_point import EIGHT_BITS, fixed_point
from crosschip.ops.fixed_point.rescaling import centered, half_away, offset, scale_of
from crosschip.ops.standard.activation import Sigmoid, Tanh

_INT16 = {ElementType.INT16}


@fixed_point(Sigmoid, EIGHT_BITS)
def sigmoid_of_bytes(operation: Sigmoid, input: Array) -> Array:
    powers = np.exp(-_reals(operation, input).astype(np.float64)).astype(np.float32)
    return _rounded(operation, np.float32(1) / (np.float32(1) + powers))


@fixed_point(Tanh, EIGHT_BITS)
def tanh_of_bytes(operation: Tanh, input: Array) -> Array:
    values = np.tanh(_reals(operation, input).astype(np.float64))
    return _rounded(operation, values.astype(np.float32))


def _reals(operation: Operator, input: Array) -> Array:
    return centered(operation, "input", input).astype(np.float32) * scale_of(operation, "input")


def _rounded(operation: Operator, reals: Array) -> Array:
    steps = half_away(reals * (np.float32(1) / scale_of(operation)))
    return offset(operation, steps.astype(np.int64))


@fixed_point(Sigmoid, _INT16)
def sigmoid(operation: Sigmoid, input: Array) -> Array:
    steps = _steps(input, scale_of(operation, "input"), powers=(0,))
    values = _interpolated(np.abs(steps), 9, 0x7FFF << 10)
    return np.where(steps >= 0, values + (1 << 9), (1 << 25) - values + (1 << 9) - 1) >> 10


@fixed_point(Tanh, _INT16)
def tanh(operation: Tanh, input: Array) -> Array:
    """Return `2 * logistic(2 * input) - 1`."""
    steps = _steps(input, scale_of(operation, "input"), powers=(0, 1))
    values = _interpolated(np.abs(steps), 8, 0xFFFF << 8)
    return np.where(steps >= 0, values - (1 << 23) + 128, -values + (1 << 23) + 127) >> 8


def _steps(input: Array, scale: np.float32, powers: tuple[int, ...]) -> Array:
    """Return the input in steps of 1 / (3 * 4096).

    The factor is exact if the scale is `2**(power - 12)`, else it has 15 bits, truncated.
    """
    integers = input.astype(np.int64)
    fraction, exponent = np.frexp(scale)
    if fraction == 0.5 and exponent - 1 + 12 in powers:
        return integers * (3 << int(exponent - 1 + 12))
    multiplier, shift = np.float64(scale) * 4096 * 3, 0
    while multiplier <= 32767 / 2 and shift <= 30:
        multiplier, shift = multiplier * 2, shift + 1
    rounding = 1 << (shift - 1) if shift else 0
    return (integers * int(multiplier) + rounding) >> shift


def _interpolated(steps: Array, bits: int, greatest: int) -> Array:
    """Return the logistic function of `steps / 2**bits` entries, with 16 + `bits` bits."""
    table = _table()
    index = np.minimum(steps >> bits, 254)
    low, high = table[index], table[index + 1]
    fraction = steps & ((1 << bits) - 1)
    values = (low << bits) + fraction * (high - low)
    return np.where(steps >> bits >= 255, greatest, values)


@cache
def _table() -> Array:
    """Return `2**16 / (1 + exp(-i / 24))` for 256 integers, raised to interpolate better.

    Each is raised by half of the error of interpolation at the next midpoint.
    """
    entries, middles = (2**16 / (1 + np.exp(-(np.arange(257) + o) / 24)) for o in (0.0, 0.5))
    errors = middles[:256] - (entries[:256] + entries[1:]) / 2
    table = np.rint(entries[:256] + errors / 2).astype(np.int64)
    table[-1] = 2**16 - 1
    return table
