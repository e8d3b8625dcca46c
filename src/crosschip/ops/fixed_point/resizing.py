"""Bilinear resampling of integers."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.ops.fixed_point import INTEGERS, fixed_point
from crosschip.ops.fixed_point.rescaling import clamped
from crosschip.ops.standard.resizing import AlignMode, ResizeLinear

_BITS = 10
"""The bits after the binary point of pixels' positions."""


@fixed_point(ResizeLinear, INTEGERS)
def resize_linear(operation: ResizeLinear, input: Array) -> Array:
    """Interpolate two axes at once, at positions and by a ratio of 10 bits, halves away from 0."""
    integers = input.astype(np.int64)
    sizes = operation.outputs[0].type.static_shape
    assert sizes is not None, "function_of takes no other operation"
    for axis in (2, 3):
        integers = _interpolate(operation, integers, axis, sizes[axis])
    half = 1 << (2 * _BITS - 1)
    rounded = (np.abs(integers) + half) >> (2 * _BITS)
    return clamped(operation, np.sign(integers) * rounded)


def _interpolate(operation: ResizeLinear, pixels: Array, axis: int, target: int) -> Array:
    """Return weighted sums of two neighbours along an axis, with weights of 10 bits."""
    size, one = pixels.shape[axis], 1 << _BITS
    ratio = (one * size + target // 2) // target
    if operation.align_corners and target > 1:
        ratio = (one * (size - 1) + (target - 1) // 2) // (target - 1)
    positions = np.arange(target, dtype=np.int64) * ratio
    if operation.align_mode is AlignMode.HALF_PIXEL and not operation.align_corners:
        positions += ratio // 2 - one // 2
    low = np.maximum(np.sign(positions) * (np.abs(positions) >> _BITS), 0)
    above = positions + one - 1
    high = np.minimum(np.sign(above) * (np.abs(above) >> _BITS), size - 1)
    shape = [1] * pixels.ndim
    shape[axis] = -1
    weight = (positions - low * one).reshape(shape)
    return pixels.take(low, axis) * (one - weight) + pixels.take(high, axis) * weight
