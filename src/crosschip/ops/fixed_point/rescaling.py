"""Rescaling of integers by fixed-point multipliers, and its rounding.

A positive real factor is `multiplier * 2**(shift - 31)`, with a multiplier of 31 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crosschip.ir import Array, Quantization
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.slots import Fuse

_HALF = 1 << 30


class Factor(NamedTuple):
    """Positive real factors in fixed point, as int64 arrays that broadcast."""

    multiplier: Array
    shift: Array


def factor(real: Array | np.floating[Any] | float) -> Factor:
    """Return the nearest factor to a real in float64; one below 2**-32 becomes 0."""
    fraction, shift = np.frexp(np.asarray(real, np.float64))
    multiplier = half_away(fraction * 2.0**31).astype(np.int64)
    shift = shift.astype(np.int64)
    is_one = multiplier == 1 << 31
    multiplier, shift = np.where(is_one, _HALF, multiplier), shift + is_one
    vanishes = shift < -31
    return Factor(np.where(vanishes, 0, multiplier), np.where(vanishes, 0, shift))


def half_away(real: Array) -> Array:
    """Round reals to the nearest integer, halves away from zero."""
    whole = np.trunc(real)
    return np.asarray(whole + np.copysign(np.abs(real - whole) >= 0.5, real))


def rescaled(integers: Array, by: Factor) -> Array:
    """Multiply 32-bit integers by a factor, rounding twice: the product, then the shift."""
    left, right = np.maximum(by.shift, 0), np.maximum(-by.shift, 0)
    return shifted_right(high_product(wrapped(integers << left), by.multiplier), right)


def rescaled_long(sums: Array, by: Factor) -> Array:
    """Multiply 48-bit sums by a factor whose multiplier is rounded to 15 bits."""
    short = np.where(by.multiplier < 0x7FFF0000, (by.multiplier + (1 << 15)) >> 16, 0x7FFF)
    shift = 15 - by.shift
    return wrapped((sums * short + (np.int64(1) << (shift - 1))) >> shift)


def high_product(first: Array, second: Array | int, bits: int = 31) -> Array:
    """Return `first * second / 2**bits`, rounded to nearest, and saturated."""
    product = first * second
    nudge = np.where(product >= 0, 1 << (bits - 1), 1 - (1 << (bits - 1)))
    total: Array = product + nudge
    quotient = np.where(total >= 0, total >> bits, -(-total >> bits))
    return np.minimum(quotient, (1 << bits) - 1)


def shifted_right(integers: Array, bits: Array | int) -> Array:
    """Return `integers / 2**bits`, rounded to nearest, halves away from zero."""
    mask = (np.int64(1) << np.asarray(bits, np.int64)) - 1
    remainder = integers & mask
    return (integers >> bits) + (remainder > (mask >> 1) + (integers < 0))


def wrapped(integers: Array) -> Array:
    """Return the integers modulo 2**32, in the range of int32."""
    return integers.astype(np.int32).astype(np.int64)


def quantization_of(operation: Operator, slot: str | None = None) -> Quantization:
    """Return the quantization of a slot's operand, or of the first output."""
    operand = operation.outputs[0] if slot is None else operation.operand(slot)
    quantization = None if operand is None else operand.type.quantization
    assert quantization is not None, "all tensors have one"
    return quantization


def scale_of(operation: Operator, slot: str | None = None) -> np.float32:
    """Return the single scale of a slot's operand, or of the first output."""
    return np.float32(quantization_of(operation, slot).scale[0])


def centered(operation: Operator, slot: str, integers: Array) -> Array:
    """Return a slot's integers less their zero points, in int64."""
    quantization = quantization_of(operation, slot)
    zero_points = np.array(quantization.zero_point, np.int64)
    return integers.astype(np.int64) - along_axis(zero_points, quantization, integers.ndim)


def along_axis(values: Array, quantization: Quantization, rank: int) -> Array:
    """Return the values of a quantization in the shape that broadcasts along its axis."""
    shape = [1] * rank
    if quantization.axis is not None:
        shape[quantization.axis] = -1
    return values.reshape(shape)


def clamped(operation: Operator, integers: Array) -> Array:
    """Clamp the output's integers to its type's range, and to that of a fused activation."""
    least, greatest = limits(operation.outputs[0].type.element_type)
    if operation.fused is not Fuse.NONE:
        low, high = integer_bounds(operation, operation.fused.bounds)
        least, greatest = max(least, low), min(greatest, high)
    # As in C, the upper bound wins where the lower one exceeds it.
    return np.minimum(np.maximum(integers, least), greatest).astype(np.int64)


def integer_bounds(operation: Operator, bounds: tuple[float, float]) -> tuple[int, int]:
    """Return the output's integers for real bounds; infinite ones are those of int32."""
    quantization = quantization_of(operation)
    reals = np.array(bounds, np.float32) / scale_of(operation)
    steps = half_away(np.clip(reals, -(2.0**31), 2.0**31))
    least, greatest = np.clip(steps, -(2**31), 2**31 - 1).astype(np.int64).tolist()
    return least + quantization.zero_point[0], greatest + quantization.zero_point[0]


def offset(operation: Operator, integers: Array) -> Array:
    """Add the output's zero point, and clamp."""
    return clamped(operation, integers + quantization_of(operation).zero_point[0])
