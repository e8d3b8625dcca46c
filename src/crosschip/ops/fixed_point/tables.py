"""Functions of int16 by tables of 512 equal intervals, interpolated linearly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.operator import Operator
from crosschip.ops.fixed_point import fixed_point
from crosschip.ops.fixed_point.newton import bit_length
from crosschip.ops.fixed_point.rescaling import (
    clamped,
    factor,
    half_away,
    quantization_of,
    rescaled,
    scale_of,
)
from crosschip.ops.standard.activation import Gelu, Softmax
from crosschip.ops.standard.unary import Exp, Log, Rsqrt

_INT16 = {ElementType.INT16}
_LEAST, _GREATEST = -(1 << 15), (1 << 15) - 1


def table(
    function: Callable[[Array], Array], first: Array, last: Array, low: Array, high: Array
) -> Array:
    """Return the integers of a function at 513 points, in int64.

    Half of the error in the middle of an interval is taken from the point before it. The type of
    the reals, float32 or float64, is that of the first point.

    Args:
        function: the function.
        first: the real of the smallest input.
        last: the real of the greatest input.
        low: the real of the smallest output.
        high: the real of the greatest output.
    """
    kind = first.dtype.type
    step = (last - first) / kind(512)
    unit = kind(1 << 16) / (high - low)
    points = first + np.arange(513).astype(kind) * step
    values = function(points) * unit
    middles = half_away(function(points[:-1] + step / kind(2)) * unit)
    samples = half_away(values)
    between = half_away((values[1:] + samples[:-1]) / kind(2))
    bias = half_away((between - middles) / kind(2))
    final = half_away(function(np.asarray(last)) * unit)
    # Where the function overflows, the correction is NaN, of which the conversion makes 0.
    integers = np.nan_to_num(np.append(samples[:-1] - bias, final), nan=0.0)
    return np.clip(integers, _LEAST, _GREATEST).astype(np.int64)


def look_up(integers: Array, entries: Array) -> Array:
    """Return the interpolated entries of a table for integers of 16 bits.

    Differences of entries, and results, wrap around at 16 bits.
    """
    index, part = 256 + (integers >> 7), integers & 0x7F
    slope = (entries[index + 1] - entries[index]).astype(np.int16).astype(np.int64)
    return (entries[index] + ((slope * part + 64) >> 7)).astype(np.int16).astype(np.int64)


def _apply(operation: Operator, function: Callable[[Array], Array], input: Array) -> Array:
    ends = [
        np.asarray(scale * np.float32(limit - quantization_of(operation, slot).zero_point[0]))
        for slot, scale in (("input", scale_of(operation, "input")), (None, scale_of(operation)))
        for limit in (_LEAST, _GREATEST)
    ]
    return clamped(operation, look_up(input.astype(np.int64), table(function, *ends)))


@fixed_point(Exp, _INT16)
def exp(operation: Exp, input: Array) -> Array:
    return _apply(operation, np.exp, input)


@fixed_point(Gelu, _INT16)
def gelu(operation: Gelu, input: Array) -> Array:
    return _apply(operation, lambda x: operation.reference(x).astype(np.float32), input)


@fixed_point(Log, _INT16)
def log(operation: Log, input: Array) -> Array:
    """Use the smallest real of the output for numbers that have no logarithm."""
    least = scale_of(operation) * np.float32(_LEAST - quantization_of(operation).zero_point[0])
    return _apply(operation, lambda x: np.where(x <= 0, least, np.log(x)), input)


@fixed_point(Rsqrt, _INT16)
def rsqrt(operation: Rsqrt, input: Array) -> Array:
    """Use the greatest real of the output for numbers that have no root."""
    greatest = scale_of(operation) * np.float32(_GREATEST)
    return _apply(operation, lambda x: np.where(x <= 0, greatest, 1 / np.sqrt(x)), input)


@fixed_point(Softmax, _INT16)
def softmax(operation: Softmax, input: Array) -> Array:
    """Look up powers on [-10, 0], and the reciprocal of their sum, of 15 bits each."""
    powers_table = table(np.exp, *map(np.asarray, (-10.0, 0.0, -1.0, 1.0)))
    reciprocals = table(lambda x: np.asarray(1 / (1 + x)), *map(np.asarray, (0.0, 1.0, -1.0, 1.0)))
    by = factor(np.float64(scale_of(operation, "input")) / (10.0 / 65535.0))
    integers = np.moveaxis(input.astype(np.int64), operation.axis, -1)
    differences = integers - integers.max(axis=-1, keepdims=True)
    scaled = np.clip(rescaled(differences, by) + _GREATEST, _LEAST, _GREATEST)
    powers = look_up(scaled, powers_table)
    total = powers.sum(axis=-1, keepdims=True)
    headroom = 32 - bit_length(np.maximum(total, 1))
    shifted = ((total << (headroom - 1)) + (1 << 13)) >> 14
    position = np.clip(shifted - (1 << 15) - (1 << 16), _LEAST, _GREATEST)
    shift = 31 - headroom
    quotients = (powers * look_up(position, reciprocals) + (1 << (shift - 1))) >> shift
    return np.moveaxis(np.clip(quotients, 0, _GREATEST), -1, operation.axis)
