"""Bilinear resampling of integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.fixed_point import fixed_point
from crosschip.ops.fixed_point.rescaling import clamped
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.resizing import ResizeLinear

BITS = 10
"""The bits after the binary point of pixels' positions."""


@fixed_point(ResizeLinear, {ElementType.INT8, ElementType.INT16})
def resize_linear(operation: ResizeLinear, input: Array) -> Array:
    """Interpolate at positions with 10 bits after the binary point, halves away from zero."""
    pixels = input.astype(np.int64)
    for axis, low, high, weight in neighbours(operation, input.shape):
        weight = _along(weight, axis)
        near, far = pixels.take(low, axis), pixels.take(high, axis)
        pixels = near * ((1 << BITS) - weight) + far * weight
    rounded = (np.abs(pixels) + (1 << (2 * BITS - 1))) >> (2 * BITS)
    return clamped(operation, np.sign(pixels) * rounded)


def neighbours(
    operation: ResizeLinear, shape: Sequence[int]
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield, for height and width, the axis, and for each target pixel its two neighbours.

    The second neighbour has a weight with `BITS` bits after the binary point, the first the rest.
    """
    one = 1 << BITS
    for axis, size, target in _sizes(operation, shape):
        is_aligned = operation.align_corners and target > 1
        sides = (size - 1, target - 1) if is_aligned else (size, target)
        ratio = (one * sides[0] + sides[1] // 2) // sides[1]
        positions = np.arange(target, dtype=np.int64) * ratio
        if operation.align_mode is AlignMode.HALF_PIXEL:
            positions += ratio // 2 - one // 2
        low = np.maximum(positions >> BITS, 0)
        high = np.clip((positions + one - 1) >> BITS, 0, size - 1)
        yield axis, low, high, positions - low * one


@fixed_point(ResizeLinear, {ElementType.UINT8})
def resize_unsigned(operation: ResizeLinear, input: Array) -> Array:
    """Interpolate in float32, rounded by adding a half."""
    corners = []
    for axis, size, target in _sizes(operation, input.shape):
        is_aligned = operation.align_corners and target > 1
        ratio = np.float32(size - 1 if is_aligned else size)
        ratio /= np.float32(target - 1 if is_aligned else target)
        positions = np.arange(target, dtype=np.float32)
        if operation.align_mode is AlignMode.HALF_PIXEL:
            positions = (positions + np.float32(0.5)) * ratio - np.float32(0.5)
        else:
            positions = positions * ratio
        low = np.maximum(np.floor(positions), 0).astype(np.int64)
        high = np.minimum(np.ceil(positions), size - 1).astype(np.int64)
        weight = _along(positions - low.astype(np.float32), axis)
        one = np.float32(1)
        corners.append(((low, one - weight), (high, weight)))
    total: Array = np.zeros((), np.float32)
    for columns, horizontal in corners[1]:
        for rows, vertical in corners[0]:
            pixels = input.take(rows, 2).take(columns, 3).astype(np.float32)
            total = total + pixels * vertical * horizontal
    return clamped(operation, np.trunc(total + np.float32(0.5)).astype(np.int64))


def _sizes(operation: ResizeLinear, shape: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return height and width: the axis, its size and the target's."""
    axes = operation.axes(tuple(shape[2:]))
    return [(n, axis.size, len(axis.coordinates)) for n, axis in enumerate(axes, 2)]


def _along(values: Array, axis: int) -> Array:
    """Return values in the shape that broadcasts along an axis of images."""
    return values.reshape((-1,) + (1,) * (3 - axis))
