"""Functions of single integers."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.fixed_point import INTEGERS, fixed_point
from crosschip.ops.fixed_point.newton import inverse_square_root
from crosschip.ops.fixed_point.rescaling import (
    Factor,
    centered,
    clamped,
    factor,
    offset,
    rescaled,
    scale_of,
)
from crosschip.ops.standard.unary import Abs, Rsqrt, Sqrt


@fixed_point(Abs, INTEGERS)
def absolute(operation: Abs, input: Array) -> Array:
    integers = np.abs(centered(operation, "input", input))
    by = factor(scale_of(operation, "input") / scale_of(operation))
    return offset(operation, rescaled(integers, by))


@fixed_point(Sqrt, {ElementType.INT8, ElementType.INT16})
def sqrt(operation: Sqrt, input: Array) -> Array:
    """Compute in float32, and truncate."""
    reals = centered(operation, "input", input).astype(np.float32) * scale_of(operation, "input")
    return offset(operation, (np.sqrt(reals) / scale_of(operation)).astype(np.int64))


@fixed_point(Rsqrt, {ElementType.INT8})
def rsqrt(operation: Rsqrt, input: Array) -> Array:
    """Compute roots with 20 bits after the binary point; that of 0 is the greatest integer."""
    integers = centered(operation, "input", input)
    root = inverse_square_root(integers)
    fine = rescaled(np.ones_like(integers), Factor(root.multiplier, root.shift + 20))
    unit = factor(1 / np.float64(np.sqrt(scale_of(operation, "input")) * scale_of(operation)))
    result = offset(operation, rescaled(fine, Factor(unit.multiplier, unit.shift - 20)))
    return np.where(integers == 0, clamped(operation, np.full_like(integers, 127)), result)
