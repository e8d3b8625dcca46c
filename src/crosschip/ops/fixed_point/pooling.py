"""Pooling of integers."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.ops.fixed_point import INTEGERS, fixed_point
from crosschip.ops.fixed_point.rescaling import clamped, half_away, quantization_of
from crosschip.ops.standard.pooling import AveragePool2D


@fixed_point(AveragePool2D, INTEGERS)
def average_pool(operation: AveragePool2D, input: Array) -> Array:
    """Return the mean of the stored integers, halves away from zero."""
    zero_point = quantization_of(operation, "input").zero_point[0]
    pixels = input.astype(np.float64) - (zero_point if operation.count_include_pad else 0)
    return clamped(operation, half_away(operation.reference(pixels)))
