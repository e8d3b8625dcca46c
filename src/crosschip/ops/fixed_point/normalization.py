"""Normalization of integers."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.fixed_point import EIGHT_BITS, fixed_point
from crosschip.ops.fixed_point.newton import inverse_square_root
from crosschip.ops.fixed_point.rescaling import (
    Factor,
    centered,
    factor,
    offset,
    rescaled,
    scale_of,
    wrapped,
)
from crosschip.ops.standard.normalization import LayerNormalization, LpNormalization


@fixed_point(LpNormalization, EIGHT_BITS)
def l2_normalization(operation: LpNormalization, input: Array) -> Array:
    """Divide by the square root of the sum of squares, with 7 bits after the binary point."""
    integers = centered(operation, "input", input)
    by = inverse_square_root((integers**2).sum(axis=operation.axis, keepdims=True))
    if operation.input.type.element_type is ElementType.UINT8:
        return offset(operation, rescaled(integers * 128, by))
    return offset(operation, rescaled(integers, Factor(by.multiplier, by.shift + 7)))


@fixed_point(LayerNormalization, {ElementType.INT32})
def layer_normalization(
    operation: LayerNormalization, input: Array, scale: Array, bias: Array
) -> Array:
    """Normalize the last axis in a cell, with 10 bits after the binary point.

    A variance below 1 becomes one that depends on the scale.
    """
    integers = centered(operation, "input", input)
    count, unit = integers.shape[-1], scale_of(operation, "scale")
    mean = _quotient(integers.sum(-1, keepdims=True) << 10, count)
    squares = (integers**2).sum(-1, keepdims=True) * ((1 << 20) // count)
    variance = _quotient(squares - mean**2, 1 << 20)
    variance = np.where(variance < 1, max(1, int(10000 * unit)), variance)
    normal = rescaled((integers << 10) - mean, inverse_square_root(variance))
    total = wrapped(normal * scale) + bias
    rounded = _quotient(total + np.where(total > 0, 512, -512), 1 << 10)
    return offset(operation, rescaled(rounded, factor(unit / scale_of(operation))))


def _quotient(dividend: Array, divisor: int) -> Array:
    """Divide as in C, truncating toward zero."""
    return np.sign(dividend) * (np.abs(dividend) // divisor)
