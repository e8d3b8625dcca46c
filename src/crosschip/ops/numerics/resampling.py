"""Places of the pixels of an image in another one that it is made of, along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from crosschip.ir import Array, Dim, unknown


class AlignMode(IntEnum):
    """The places of the pixels of two images, unless their corners are aligned.

    NNAdapter has the first two. With `size` pixels in the source, `new` in the target and `ratio`
    for one step in the target:

    - `HALF_PIXEL`: `source = (target + 0.5) * ratio - 0.5`.
    - `ASYMMETRIC`: `source = target * ratio`.
    - `PYTORCH_HALF_PIXEL`: like `HALF_PIXEL`, but 0 where `new` is 1.
    - `SYMMETRIC_HALF_PIXEL`: like `HALF_PIXEL`, plus `(size - new / scale) / 2`: what rounding the
      new size cost is divided between both ends.
    - `WHOLE_HALF_PIXEL`: `source = (target + 0.5) * ratio` (ONNX's `tf_half_pixel_for_nn`).
    - `CROP`: `source = (start + target * (end - start) / (new - 1)) * (size - 1)`, or the middle
      `(start + end) / 2 * (size - 1)` where `new` is 1, with `start` and `end` of the axis from
      `roi`; a place outside of `[0, size - 1]` gives `extrapolation_value`.
    - `SCALED_CORNERS`: `source = target * (size - 1) / (size * scale - 1)`, 0 where `size * scale`
      is 1: corners aligned before the new size is rounded, as ONNX has it where `scales` are given.
    """

    HALF_PIXEL = 0
    ASYMMETRIC = 1
    PYTORCH_HALF_PIXEL = 2
    SYMMETRIC_HALF_PIXEL = 3
    WHOLE_HALF_PIXEL = 4
    CROP = 5
    SCALED_CORNERS = 6


class Rounding(IntEnum):
    """The choice of the pixel that is nearest to a place between two of them.

    `USUAL`: `UP_AT_HALF` with `align_corners`, else `DOWN` (NNAdapter and Paddle). `UP_AT_HALF` and
    `DOWN_AT_HALF`: the nearer one, and at exactly a half the greater or the lesser one. `DOWN` and
    `UP`: always the lesser or the greater one.
    """

    USUAL = 0
    DOWN_AT_HALF = 1
    UP_AT_HALF = 2
    DOWN = 3
    UP = 4


class Axis(NamedTuple):
    """One axis that is resampled.

    Attributes:
        size: of the source.
        places: where in the source each pixel of the target lies, in float32.
        scale: how much longer the target is.
        outside: which places are to be extrapolated.
    """

    size: int
    places: Array
    scale: float
    outside: Array


class Neighbours(NamedTuple):
    """The source pixels that each pixel of the target is a sum of, along one axis.

    Attributes:
        pixels: which they are, [new, number of neighbours].
        weights: what each of them counts, likewise.
    """

    pixels: Array
    weights: Array

    def matrix(self, size: int) -> Array:
        """Weights of `size` source pixels for each pixel of the target, [new, size]."""
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
    """Height and width, as they are resampled."""
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
            places = _spread(new, (size - 1) / (new - 1) if new > 1 else 0.0)
        else:
            places = _places(align_mode, size, new, ratio, scale, extent)
        outside = (places < 0) | (places > size - 1)
        if align_corners or align_mode is not AlignMode.CROP:
            outside[:] = False
        axes.append(Axis(size, places, scale, outside))
    return axes


def _places(
    mode: AlignMode,
    size: int,
    new: int,
    ratio: np.float32,
    scale: float,
    extent: tuple[float, float],
) -> Array:
    """The place in the source of each pixel of the target."""
    half = np.float32(0.5)
    middles = (np.arange(new, dtype=np.float32) + half) * ratio
    if mode is AlignMode.ASYMMETRIC:
        return _spread(new, ratio)
    if mode is AlignMode.SCALED_CORNERS:
        return _spread(new, (size - 1) / (size * scale - 1) if size * scale != 1 else 0.0)
    if mode is AlignMode.CROP:
        start, end = extent
        if new == 1:
            return np.full(1, (start + end) / 2 * (size - 1), np.float32)
        step = (end - start) * (size - 1) / (new - 1) if new else 0.0
        return _spread(new, step) + np.float32(start * (size - 1))
    if mode is AlignMode.WHOLE_HALF_PIXEL:
        return middles
    if mode is AlignMode.PYTORCH_HALF_PIXEL and new == 1:
        return np.zeros(1, np.float32)
    if mode is AlignMode.SYMMETRIC_HALF_PIXEL:
        return middles - half + np.float32((size - new / scale) / 2 if new else 0.0)
    return middles - half


def _spread(new: int, step: float | np.float32) -> Array:
    return np.arange(new, dtype=np.float32) * np.float32(step)


def extrapolated(axes: Sequence[Axis]) -> Array:
    """Mask of the pixels of the target that are to be extrapolated, [new height, new width]."""
    rows, columns = (axis.outside for axis in axes)
    return np.asarray(rows[:, None] | columns)


def nearest(axis: Axis, rounding: Rounding, align_corners: bool) -> Array:
    """The source pixel for each pixel of the target."""
    if rounding is Rounding.USUAL:
        rounding = Rounding.UP_AT_HALF if align_corners else Rounding.DOWN
    return np.clip(_rounded(axis.places, rounding), 0, axis.size - 1).astype(np.int64)


def _rounded(places: Array, rounding: Rounding) -> Array:
    half = np.float32(0.5)
    if rounding is Rounding.DOWN_AT_HALF:
        return np.ceil(places - half)
    if rounding is Rounding.UP_AT_HALF:
        return np.floor(places + half)
    return np.floor(places) if rounding is Rounding.DOWN else np.ceil(places)


def neighbours(
    axis: Axis,
    weight: Callable[[Array], Array],
    radius: int,
    antialias: bool,
    exclude_outside: bool,
) -> Neighbours:
    """The source pixels that count for each pixel of the target.

    Args:
        axis: how the axis is resampled.
        weight: what a pixel counts, by its distance from the place.
        radius: the distance from which on that is 0.
        antialias: whether the distance is measured in pixels of a smaller target.
        exclude_outside: whether pixels beyond the border count nothing.
    """
    # Where there is no target, no distance is asked for, and it could be any.
    shrinks = antialias and len(axis.places) > 0
    stretch = max(1.0, 1 / axis.scale) if shrinks else 1.0
    count = int(np.ceil(radius * stretch))
    places = axis.places.astype(np.float64)[:, None]
    pixels = np.floor(places).astype(np.int64) + np.arange(1 - count, count + 1)
    weights = weight((pixels - places) / stretch)
    if exclude_outside:
        weights = np.where((pixels < 0) | (pixels >= axis.size), 0, weights)
    if antialias or exclude_outside:
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    return Neighbours(np.clip(pixels, 0, axis.size - 1), weights)


def scaled(size: Dim, scale: float) -> Dim:
    if isinstance(size, int):
        return _scaled_size(size, scale)
    if float(scale).is_integer():
        return size * int(scale)
    return unknown()


def _scaled_size(size: int, scale: float) -> int:
    if not 0 < scale < np.inf or size * scale >= 2**31:
        raise ValueError(f"scales: {scale} is no factor for a size of {size}")
    return int(np.floor(np.float32(size) * np.float32(scale)))
