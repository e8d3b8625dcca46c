"""Quantization of reals."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.fixed_point import INTEGERS, fixed_point
from crosschip.ops.fixed_point.rescaling import (
    along_axis,
    centered,
    clamped,
    factor,
    half_away,
    offset,
    quantization_of,
    rescaled,
    scale_of,
)
from crosschip.ops.standard.quantization import Quantize


@fixed_point(Quantize, {ElementType.FLOAT32})
def quantize(operation: Quantize, input: Array) -> Array:
    """Divide in float32, and round halves away from zero."""
    quantization = quantization_of(operation)
    scale = along_axis(np.array(quantization.scale, np.float32), quantization, input.ndim)
    zero_point = along_axis(np.array(quantization.zero_point), quantization, input.ndim)
    steps = np.nan_to_num(half_away(input / scale), nan=-(2.0**31))
    return clamped(operation, np.clip(steps, -(2.0**31), 2.0**31).astype(np.int64) + zero_point)


@fixed_point(Quantize, INTEGERS | {ElementType.INT32})
def requantize(operation: Quantize, input: Array) -> Array:
    """Rescale integers of another quantization."""
    integers = centered(operation, "input", input)
    if scale_of(operation, "input") == scale_of(operation):
        return offset(operation, integers)
    by = factor(np.float64(scale_of(operation, "input")) / np.float64(scale_of(operation)))
    return offset(operation, rescaled(integers, by))
