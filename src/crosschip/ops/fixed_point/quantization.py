"""Quantization of reals."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.fixed_point import fixed_point
from crosschip.ops.fixed_point.rescaling import along_axis, clamped, half_away, quantization_of
from crosschip.ops.standard.quantization import Quantize


@fixed_point(Quantize, {ElementType.FLOAT32})
def quantize(operation: Quantize, input: Array) -> Array:
    """Divide in float32, and round halves away from zero."""
    quantization = quantization_of(operation)
    scale = along_axis(np.array(quantization.scale, np.float32), quantization, input.ndim)
    zero_point = along_axis(np.array(quantization.zero_point), quantization, input.ndim)
    steps = np.nan_to_num(half_away(input / scale), nan=-(2.0**31))
    return clamped(operation, np.clip(steps, -(2.0**31), 2.0**31).astype(np.int64) + zero_point)
