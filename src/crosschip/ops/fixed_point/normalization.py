"""Normalization of integers."""

from __future__ import annotations

from crosschip.ir import Array, ElementType
from crosschip.ops.fixed_point import EIGHT_BITS, fixed_point
from crosschip.ops.fixed_point.newton import inverse_square_root
from crosschip.ops.fixed_point.rescaling import Factor, centered, offset, rescaled
from crosschip.ops.standard.normalization import LpNormalization


@fixed_point(LpNormalization, EIGHT_BITS)
def l2_normalization(operation: LpNormalization, input: Array) -> Array:
    """Divide by the square root of the sum of squares, with 7 bits after the binary point."""
    integers = centered(operation, "input", input)
    by = inverse_square_root((integers**2).sum(axis=operation.axis, keepdims=True))
    if operation.input.type.element_type is ElementType.UINT8:
        return offset(operation, rescaled(integers * 128, by))
    return offset(operation, rescaled(integers, Factor(by.multiplier, by.shift + 7)))
