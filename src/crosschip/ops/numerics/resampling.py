"""Source coordinates and weights of resampled images, along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from crosschip.ir import Array, Dim, unknown


class AlignMode(IntEnum):
    """Mapping of target pixels to source coordinates, unless corners are aligned.

    The first two are NNAdapter's. With `size` source pixels, `new` target pixels and the step
    `ratio`:

    - `HALF_PIXEL`: `source = (target + 0.5) * ratio - 0.5`.
    - `ASYMMETRIC`: `source = target * ratio`.
    - `PYTORCH_HALF_PIXEL`: like `HALF_PIXEL`, but 0 where `new` is 1.
    - `SYMMETRIC_HALF_PIXEL`: like `HALF_PIXEL`, plus `(size - new / scale) / 2`, which distributes
      the error of rounding the new size to both ends.
    - `WHOLE_HALF_PIXEL`: `source = (target + 0.5) * ratio` (ONNX's `tf_half_pixel_for_nn`).
    - `CROP`: `source = (start + target * (end - start) / (new - 1)) * (size - 1)`, or the middle
      `(start + end) / 2 * (size - 1)` where `new` is 1, with `start` and `end` of the axis from
      `roi`; coordinates outside `[0, size - 1]` give `extrapolation_value`.
    - `SCALED_CORNERS`: `source = target * (size - 1) / (size * scale - 1)`, 0 where `size * scale`
      is 1: corners are aligned before the new size is rounded, as in ONNX with `scales`.
    """

    HALF_PIXEL = 0
    ASYMMETRIC = 1
    PYTORCH_HALF_PIXEL = 2
    SYMMETRIC_HALF_PIXEL = 3
    WHOLE_HALF_PIXEL = 4
    CROP = 5
    SCALED_CORNERS = 6


class Rounding(IntEnum):
    """Rounding of a source coordinate to the nearest pixel.

    `USUAL`: `UP_AT_HALF` with `align_corners`, else `DOWN` (NNAdapter and Paddle). `UP_AT_HALF` and
    `DOWN_AT_HALF`: to nearest, a half up or down. `DOWN` and `UP`: always down or up.
    """

    USUAL = 0
    DOWN_AT_HALF = 1
    UP_AT_HALF = 2
    DOWN = 3
    UP = 4


class Axis(NamedTuple):
    """Resampled axis.

    Attributes:
        size: the source size.
        coordinates: the source coordinate of each target pixel, in float32.
        scale: the target size divided by the source size.
        outside: which target pixels are extrapolated.
    """

    size: int
    coordinates: Array
    scale: float
    outside: Array


class Neighbours(NamedTuple):
    """Source pixels that contribute to each target pixel, along one axis.

    Attributes:
        pixels: their indices, [new, number of neighbours].
        weights: their weights, in the same shape.
    """

    pixels: Array
    weights: Array

    def matrix(self, size: int) -> Array:
        """Return the weights as a dense matrix [new, size]."""
        dense = np.zeros((len(self.pixels), size))
        rows = np.broadcast_to(np.arange(len(self.pixels))[:, None], self.pixels.shape)
        np.add.at(dense, (rows, self.pixels), self.weights)
        return dense


def axes_of(
    image: Sequence[int],
    shape: Sequence[int] | None,
    scales: Sequence[float] | None,
    align_corners: bool,
    align_mode: AlignMode,
    roi: Sequence[float] | None,
) -> list[Axis]:
    """Return the resampled axes: height and width."""
    axes = []
    for number, size in enumerate(image):
        if shape is not None:
            new = int(shape[number])
            scale, ratio = new / max(size, 1), np.float32(size / max(new, 1))
        else:
            scale = (scales or ())[number]
            new, ratio = _scaled_size(size, scale), np.float32(1 / scale)
        extent = (0.0, 1.0) if roi is None else (roi[number], roi[number + 2])
        if align_corners:
            coordinates = _ramp(new, (size - 1) / (new - 1) if new > 1 else 0.0)
        else:
            coordinates = _source_coordinates(align_mode, size, new, ratio, scale, extent)
        outside = (coordinates < 0) | (coordinates > size - 1)
        if align_corners or align_mode is not AlignMode.CROP:
            outside[:] = False
        axes.append(Axis(size, coordinates, scale, outside))
    return axes


def _source_coordinates(
    mode: AlignMode,
    size: int,
    new: int,
    ratio: np.float32,
    scale: float,
    extent: tuple[float, float],
) -> Array:
    """Return the source coordinate of each target pixel."""
    half = np.float32(0.5)
    middles = (np.arange(new, dtype=np.float32) + half) * ratio
    if mode is AlignMode.ASYMMETRIC:
        return _ramp(new, ratio)
    if mode is AlignMode.SCALED_CORNERS:
        return _ramp(new, (size - 1) / (size * scale - 1) if size * scale != 1 else 0.0)
    if mode is AlignMode.CROP:
        start, end = extent
        if new == 1:
            return np.full(1, (start + end) / 2 * (size - 1), np.float32)
        step = (end - start) * (size - 1) / (new - 1) if new else 0.0
        return _ramp(new, step) + np.float32(start * (size - 1))
    if mode is AlignMode.WHOLE_HALF_PIXEL:
        return middles
    if mode is AlignMode.PYTORCH_HALF_PIXEL and new == 1:
        return np.zeros(1, np.float32)
    if mode is AlignMode.SYMMETRIC_HALF_PIXEL:
        return middles - half + np.float32((size - new / scale) / 2 if new else 0.0)
    return middles - half


def _ramp(new: int, step: float | np.float32) -> Array:
    return np.arange(new, dtype=np.float32) * np.float32(step)


def extrapolation_mask(axes: Sequence[Axis]) -> Array:
    """Return the mask of extrapolated target pixels, [new height, new width]."""
    rows, columns = (axis.outside for axis in axes)
    return np.asarray(rows[:, None] | columns)


def nearest(axis: Axis, rounding: Rounding, align_corners: bool) -> Array:
    """Return the nearest source pixel of each target pixel."""
    if rounding is Rounding.USUAL:
        rounding = Rounding.UP_AT_HALF if align_corners else Rounding.DOWN
    return np.clip(_round(axis.coordinates, rounding), 0, axis.size - 1).astype(np.int64)


def _round(coordinates: Array, rounding: Rounding) -> Array:
    half = np.float32(0.5)
    if rounding is Rounding.DOWN_AT_HALF:
        return np.ceil(coordinates - half)
    if rounding is Rounding.UP_AT_HALF:
        return np.floor(coordinates + half)
    return np.floor(coordinates) if rounding is Rounding.DOWN else np.ceil(coordinates)


def neighbours(
    axis: Axis,
    weight: Callable[[Array], Array],
    radius: int,
    antialias: bool,
    exclude_outside: bool,
) -> Neighbours:
    """Return the source pixels that contribute to each target pixel.

    Args:
        axis: the resampled axis.
        weight: returns the weight of a pixel for its distance from the source coordinate.
        radius: the distance from which on the weight is 0.
        antialias: whether distances are measured in target pixels if the target is smaller.
        exclude_outside: whether pixels outside the image have weight 0.
    """
    # If the target is empty, `scale` may be 0.
    shrinks = antialias and len(axis.coordinates) > 0
    stretch = max(1.0, 1 / axis.scale) if shrinks else 1.0
    count = int(np.ceil(radius * stretch))
    coordinates = axis.coordinates.astype(np.float64)[:, None]
    pixels = np.floor(coordinates).astype(np.int64) + np.arange(1 - count, count + 1)
    weights = weight((pixels - coordinates) / stretch)
    if exclude_outside:
        weights = np.where((pixels < 0) | (pixels >= axis.size), 0, weights)
    if antialias or exclude_outside:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    return Neighbours(np.clip(pixels, 0, axis.size - 1), weights)


def scaled_size(size: Dim, scale: float) -> Dim:
    if isinstance(size, int):
        return _scaled_size(size, scale)
    if float(scale).is_integer():
        return size * int(scale)
    return unknown()


def _scaled_size(size: int, scale: float) -> int:
    if not 0 < scale < np.inf or size * scale >= 2**31:
        raise ValueError(f"scales: {scale} is no factor for a size of {size}")
    return int(np.floor(np.float32(size) * np.float32(scale)))
