"""Resampling of pictures along one axis, for sizes that may be unknown until a run.

Each output pixel is a weighted sum of pixels of the picture, its taps. Their indices and weights
are computed from the sizes in exact integers, so they are the same on all devices.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from crosschip.ir import Builder
from crosschip.preprocessing.value import Value

Interpolation = Literal["linear", "nearest", "cubic", "area"]


class Axis(NamedTuple):
    """Height or width of a picture that is resized, then cropped or padded.

    Attributes:
        size: the size of the picture.
        resized: the size of the resized picture; `size` itself if it is not resized.
        output: the size of the output.
        offset: the resized pixel that is at output pixel 0; negative if padding precedes it.
        pads: whether the output may have pixels outside the resized picture.
    """

    size: Value
    resized: Value
    output: Value
    offset: Value
    pads: bool

    def pixels(self) -> Value:
        """Return the resized pixel at each output pixel, which is outside for padding."""
        return self.output.numbers() + self.offset


class Taps(NamedTuple):
    """Pixels of the picture that contribute to each output pixel.

    Attributes:
        indices: their indices, int64 [output, taps]; without weights [output].
        weights: their weights, float32 [output, taps]; `None` if the pixel is copied.
    """

    indices: Value
    weights: Value | None


def taps(b: Builder, axis: Axis, interpolation: Interpolation, antialias: bool) -> Taps:
    """Return the taps of each output pixel; those of padding are of the nearest pixel."""
    pixels = axis.pixels()
    if axis.pads:
        pixels = pixels.at_least(0).at_most(axis.resized - 1)
    if axis.resized is axis.size:
        return Taps(pixels, None)
    if interpolation == "nearest":
        if antialias:
            return Taps((pixels * 2 + 1) * axis.size // (axis.resized * 2), None)
        return Taps(pixels * axis.size // axis.resized, None)
    pixels = pixels.as_column()
    if interpolation == "area":
        return _area(axis, pixels)
    radius = Value(b, np.array([2 if interpolation == "cubic" else 1]))
    return _kernel(axis, pixels, radius, interpolation == "cubic", antialias)


def _area(axis: Axis, pixels: Value) -> Taps:
    """Return taps weighted by the share of the output pixel that each covers."""
    begin, end = pixels * axis.size, (pixels + 1) * axis.size  # in units of 1 / resized
    count = (axis.size + axis.resized - 1) // axis.resized + 1
    indices = begin // axis.resized + count.numbers()
    covered = ((indices + 1) * axis.resized).at_most(end) - (indices * axis.resized).at_least(begin)
    weights = covered.at_least(0).real() / axis.size.real()
    return Taps(indices.at_most(axis.size - 1), weights)


def _kernel(axis: Axis, pixels: Value, radius: Value, cubic: bool, antialias: bool) -> Taps:
    """Return taps weighted by their distance from the output pixel's centre in the picture.

    Args:
        axis: the axis.
        pixels: the resized pixel at each output pixel, int64 [output, 1].
        radius: the distance from which on a pixel has no weight, unless it grows by antialiasing.
        cubic: whether the weights are those of cubic interpolation.
        antialias: whether distances are in resized pixels where the picture shrinks.
    """
    size, resized = axis.size, axis.resized
    unit = resized * 2  # positions are integers, in units of 1 / unit of a pixel
    width, count = unit, radius
    if antialias:
        widest = resized.at_least(size)
        width, count = widest * 2, (widest * radius + resized - 1) // resized
    centers = (pixels * 2 + 1) * size + resized  # plus one pixel, so that none is negative
    indices = centers // unit - count + (count * 2).numbers()
    distances = ((indices + 1) * unit - centers).magnitude().real() / width.real()
    weights = _cubic(distances, -0.5 if antialias else -0.75) if cubic else _linear(distances)
    inside = indices.at_least(0).at_most(size - 1)
    if antialias:  # pixels outside the picture have no weight
        is_outside = (indices - inside).magnitude().at_most(1).real()
        weights = weights * (is_outside * -1.0 + 1.0)
        weights = weights / weights.row_sums()
    return Taps(inside, weights)


def _linear(distances: Value) -> Value:
    return (distances * -1.0 + 1.0).at_least(0.0)


def _cubic(distances: Value, a: float) -> Value:
    """Return R. Keys' kernel of cubic convolution, the sum of its parts below and above 1."""
    x, y = distances.at_most(1.0), distances.at_least(1.0).at_most(2.0)
    near = (x * (a + 2.0) - (a + 3.0)) * x * x + 1.0
    far = ((y - 5.0) * y + 8.0) * y - 4.0
    return near + far * a
