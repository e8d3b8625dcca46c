"""Resampling of pictures along one axis, for sizes that may be unknown until a run.

Each output pixel is a weighted sum of pixels of the picture, its taps. Their indices and weights
are computed from the sizes, by the same operations on all devices.
"""

from __future__ import annotations

from typing import NamedTuple

from crosschip.preprocessing.settings import Interpolation
from crosschip.preprocessing.value import Value


class Axis(NamedTuple):
    """Height or width of a picture that is resized, then cropped or padded.

    Attributes:
        size: the size of the picture.
        resized: the size of the resized picture; `size` itself if it is not resized.
        output: the size of the output; `size` itself if nothing changes.
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

    def inside(self) -> Value:
        """Return the resized pixel at each output pixel, the nearest one for padding."""
        pixels = self.pixels()
        return pixels.at_least(0).at_most(self.resized - 1) if self.pads else pixels


class Tap(NamedTuple):
    """A pixel of the picture that contributes to each output pixel.

    Attributes:
        indices: its indices [output].
        weights: its weights [output].
    """

    indices: Value
    weights: Value


def copied_pixels(axis: Axis, interpolation: Interpolation, antialias: bool) -> Value | None:
    """Return the pixel that each output pixel copies; `None` if they are sums of several."""
    if axis.resized is axis.size:
        return axis.inside()
    if interpolation != "nearest":
        return None
    pixels = axis.inside()
    if antialias:
        return (pixels * 2 + 1) * axis.size // (axis.resized * 2)
    return pixels * axis.size // axis.resized


def linear_taps(axis: Axis) -> tuple[Value, Value, Value]:
    """Return the two pixels between which each output pixel is, and the weight of the second."""
    before, past = _before(axis, axis.inside())
    return before.at_least(0), (before + 1).at_most(axis.size - 1), past


def weighted_taps(axis: Axis, interpolation: Interpolation, antialias: bool) -> Tap:
    """Return any number of taps, in the matrices [output, taps]."""
    pixels = axis.inside().shaped(-1, 1)
    if interpolation == "area":
        return _area(axis, pixels)
    return _kernel(axis, pixels, interpolation == "cubic", antialias)


def _before(axis: Axis, pixels: Value) -> tuple[Value, Value]:
    """Return the last pixel before each resized pixel's center, and the distance between them."""
    unit = axis.resized * 2
    centers = (pixels * 2 + 1) * axis.size - axis.resized  # in units of 1 / unit of a pixel
    before = centers // unit
    return before, (centers - before * unit) / unit


def _area(axis: Axis, pixels: Value) -> Tap:
    """Return taps weighted by the share of the output pixel that each covers."""
    begin, end = pixels * axis.size, (pixels + 1) * axis.size  # in units of 1 / resized
    count = (axis.size + axis.resized - 1) // axis.resized + 1
    indices = begin // axis.resized + count.numbers()
    covered = ((indices + 1) * axis.resized).at_most(end) - (indices * axis.resized).at_least(begin)
    return Tap(indices.at_most(axis.size - 1), covered.at_least(0) / axis.size)


def _kernel(axis: Axis, pixels: Value, cubic: bool, antialias: bool) -> Tap:
    """Return taps weighted by their distance from the output pixel's centre in the picture."""
    size, radius = axis.size, 2 if cubic else 1
    stretch = (size / axis.resized).at_least(1) if antialias else size.known(1)
    count = -(-stretch * radius // 1)
    before, past = _before(axis, pixels)
    steps = (count * 2).numbers() - count + 1
    distances = (steps - past).magnitude() / stretch
    weights = _cubic(distances, -0.5 if antialias else -0.75) if cubic else _linear(distances)
    indices = before + steps
    inside = indices.at_least(0).at_most(size - 1)
    if antialias:  # pixels outside the picture have no weight
        is_outside = (indices - inside).magnitude().at_most(1)
        weights = weights * (-is_outside + 1)
        weights = weights / weights.row_sums()
    return Tap(inside, weights)


def _linear(distances: Value) -> Value:
    return (-distances + 1).at_least(0)


def _cubic(distances: Value, a: float) -> Value:
    """Return R. Keys' kernel of cubic convolution, the sum of its parts below and above 1."""
    x, y = distances.at_most(1), distances.at_least(1).at_most(2)
    near = (x * (a + 2) - (a + 3)) * x * x + 1
    far = ((y - 5) * y + 8) * y - 4
    return near + far * a
