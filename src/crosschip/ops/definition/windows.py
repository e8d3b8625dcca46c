"""Operators on images of any number of axes, windows that slide over these, and padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import product
from typing import ClassVar

import numpy as np

from crosschip.ir import Array, Dim, Shape, unknown
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import ceil_div
from crosschip.ops.definition.operator import Operator, UnknownRank
from crosschip.ops.definition.shapes import window_count
from crosschip.ops.definition.slots import Parameter

Pads = tuple[int, ...]
"""Padding in pixels, before and after each axis: of two, top, bottom, left, right."""

Place = tuple[int, ...]
"""An element of a window, by its index on each axis."""


class SpatialOperator(Operator):
    """Base of operators on [N, C, …] images, which are computed the same for any number of axes.

    A subclass states the number: `class Conv1D(Conv, spatial_rank=1)`.

    Attributes:
        spatial_rank: the number of axes of an image, without its batch and its channels.
    """

    __slots__ = ()
    spatial_rank: ClassVar[int] = 0

    def __init_subclass__(cls, spatial_rank: int = 0) -> None:
        super().__init_subclass__()
        if not spatial_rank:
            return
        cls.spatial_rank = spatial_rank
        for slot in cls.slots:
            if isinstance(slot, Parameter) and slot.axis_length:
                slot.set_spatial_rank(spatial_rank)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return 0 if axes[0] == 0 and set(axes[1:]) <= {None} else None


class AutoPad(IntEnum):
    """The rule for padding an image (NNAdapterAutoPadCode, which ends at 2).

    `NONE`: explicit, by `pads`. `SAME`: so that there are `ceil(size / stride)` windows, with an
    odd remainder at the bottom and on the right. `VALID`: no padding. `SAME_LOWER`: like `SAME`,
    with an odd remainder at the top and on the left.
    """

    NONE = 0
    SAME = 1
    VALID = 2
    SAME_LOWER = 3

    @property
    def keeps_size(self) -> bool:
        """Whether there are `ceil(size / stride)` windows, as for `SAME` and `SAME_LOWER`."""
        return self in (AutoPad.SAME, AutoPad.SAME_LOWER)

    def divided(self, total: int) -> tuple[int, int]:
        """Divide a number of padding pixels into those before and those after an image."""
        less, more = total // 2, -(-total // 2)
        return (more, less) if self is AutoPad.SAME_LOWER else (less, more)


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows that slide over an image; each attribute has one number per axis.

    Attributes:
        kernel: the number of elements of a window; a size may be unknown.
        strides: the distance between consecutive windows.
        dilations: the distance between consecutive elements of a window.
        auto_pad: the rule for the padding.
        pads: the padding before and after each axis, if `auto_pad` is `NONE`.
        ceil: whether a last window may extend beyond the padding.
        inside: whether each window must start in the image or in the padding before it.
    """

    kernel: Sequence[Dim]
    strides: Sequence[int]
    dilations: Sequence[int]
    auto_pad: AutoPad
    pads: Sequence[int]
    ceil: bool = False
    inside: bool = False

    def check(self) -> None:
        """Raise ValueError if a number is out of its range; the message starts with the slot."""
        for slot, numbers, least in (
            ("strides", self.strides, 1),
            ("dilations", self.dilations, 1),
            ("kernel_shape", static(self.kernel), 1),
            ("pads", self.pads, 0),
        ):
            if min(numbers) < least:
                rule = "positive" if least else "0 or more"
                raise ValueError(f"{slot}: {list(numbers)} are not all {rule}")

    @property
    def rank(self) -> int:
        """The number of axes of the image."""
        return len(self.strides)

    @property
    def before(self) -> tuple[int, ...]:
        """The padding before each axis, if `auto_pad` is `NONE`."""
        return tuple(self.pads[::2])

    @property
    def after(self) -> tuple[int, ...]:
        """The padding after each axis, if `auto_pad` is `NONE`."""
        return tuple(self.pads[1::2])

    @property
    def spans(self) -> tuple[int, ...]:
        """The number of pixels that a dilated window covers; `UnknownRank` without a kernel."""
        return tuple(map(extent, static(self.kernel), self.dilations))

    def counts(self, image: Sequence[Dim]) -> Shape:
        """Return the number of windows on each axis.

        Raises:
            ValueError: a number is out of its range, or not even one window fits.
        """
        self.check()
        return tuple(self._count(axis, size) for axis, size in enumerate(image))

    def static_counts(self, image: Sequence[int]) -> tuple[int, ...]:
        """Return the number of windows on each axis of an image of known size."""
        return static(self.counts(image))

    def sides(self, image: Sequence[Dim]) -> Pads:
        """Return the padding before and after each axis, with `auto_pad` resolved.

        Raises:
            UnknownRank: the padding depends on an unknown size.
        """
        return tuple(pad for axis, size in enumerate(image) for pad in self._side(axis, size))

    def explicit(self, image: Sequence[Dim]) -> Windows:
        """Return the same windows with explicit padding; raises as `sides` does."""
        return replace(self, auto_pad=AutoPad.NONE, pads=self.sides(image))

    def padding(self, image: Sequence[int]) -> Pads:
        """Return the padding that windows cover; at the end it may differ from `sides`."""
        pads, counts, spans = list(self.sides(image)), self.static_counts(image), self.spans
        for axis, size in enumerate(image):
            reach = (counts[axis] - 1) * self.strides[axis] + spans[axis]
            pads[2 * axis + 1] = max(0, reach - size - pads[2 * axis])
        return tuple(pads)

    def rounded_down(self, image: Sequence[int]) -> Windows:
        """Return the same windows with the padding that they cover, so that `ceil` is false."""
        padding = self.padding(image)
        return Windows(self.kernel, self.strides, self.dilations, AutoPad.NONE, padding)

    def population(self, image: Sequence[int], *, with_padding: bool) -> Array:
        """Return the number of pixels of each window that lie in the image or, too, its padding."""
        ones, padding = np.ones((1, 1, *image)), self.padding(image)
        counted = pad_image(ones, self.sides(image), 1) if with_padding else ones
        beyond = [
            max(0, wide - side) for wide, side in zip(padding, self.sides(image), strict=True)
        ]
        padded = pad_image(counted, beyond if with_padding else padding, 0)
        pixels = sliding_windows(
            padded, static(self.kernel), self.strides, self.dilations, self.static_counts(image)
        )
        return np.sum([part for _, part in pixels], axis=0)

    def sliding_windows(self, image: Array, fill: float) -> Iterator[tuple[Place, Array]]:
        """Yield each element of a window: its index, and the [N, C, …] pixels that it covers.

        Pixels outside the image are `fill`.
        """
        counts = self.static_counts(image.shape[2:])
        padded = pad_image(image, self.padding(image.shape[2:]), fill)
        return sliding_windows(padded, static(self.kernel), self.strides, self.dilations, counts)

    def _explicit_pads(self, axis: int) -> tuple[int, int]:
        before, after = self.pads[2 * axis : 2 * axis + 2]
        return (before, after) if self.auto_pad is AutoPad.NONE else (0, 0)

    def _side(self, axis: int, size: Dim) -> tuple[int, int]:
        if not self.auto_pad.keeps_size:
            return self._explicit_pads(axis)
        stride, span = self.strides[axis], self.spans[axis]
        if stride == 1:
            return self.auto_pad.divided(span - 1)
        (known,) = static([size])
        return self.auto_pad.divided(max(0, (-(-known // stride) - 1) * stride + span - known))

    def _count(self, axis: int, size: Dim) -> Dim:
        stride, span = self.strides[axis], self.spans[axis]
        if self.auto_pad.keeps_size:
            return ceil_div(size, stride)
        before, after = self._explicit_pads(axis)
        count = window_count(size + before + after, span, stride, ceil=self.ceil)
        if not (self.ceil and self.inside) or after + stride <= span:
            return count
        if isinstance(count, int) and isinstance(size, int):
            return count - 1 if (count - 1) * stride >= size + before else count
        return unknown()


def is_static(sizes: Sequence[Dim]) -> bool:
    """Return whether all sizes are numbers."""
    return all(isinstance(size, int) for size in sizes)


def static(sizes: Sequence[Dim]) -> tuple[int, ...]:
    """Return sizes that are all numbers; raise UnknownRank if one is not."""
    numbers = tuple(size for size in sizes if isinstance(size, int))
    if len(numbers) != len(sizes):
        raise UnknownRank
    return numbers


def extent(kernel: int, dilation: int) -> int:
    """Return the number of pixels that a dilated kernel spans."""
    return dilation * (kernel - 1) + 1


def pad_image(image: Array, pads: Sequence[int], value: float) -> Array:
    """Pad an [N, C, …] image with one value."""
    if not any(pads):
        return image
    sides = np.reshape((0, 0, 0, 0, *pads), (-1, 2))
    return np.pad(image, sides, constant_values=value)


def sliding_windows(
    padded: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    counts: Sequence[int],
) -> Iterator[tuple[Place, Array]]:
    """Yield, per kernel element, its index and the pixels that it covers, a view of the image."""
    for place in product(*map(range, kernel)):
        first = [at * dilation for at, dilation in zip(place, dilations, strict=True)]
        parts = (
            slice(start, start + count * stride, stride)
            for start, count, stride in zip(first, counts, strides, strict=True)
        )
        yield place, padded[(slice(None), slice(None), *parts)]
