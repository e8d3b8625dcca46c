"""What convolutions and poolings share: padding, and windows that slide over an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from crosschip.ir import Array, Dim, Shape, unknown
from crosschip.ir.dimension import ceil_div
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.definition.shapes import window_count

Pads = tuple[int, int, int, int]
"""Padding in pixels: top, bottom, left, right."""


class AutoPad(IntEnum):
    """How much an image is padded (NNAdapterAutoPadCode, which ends at 2).

    `NONE`: as `pads` says. `SAME`: so that there are `ceil(size / stride)` windows, with an odd
    rest at the bottom and on the right. `VALID`: not at all. `SAME_LOWER`: like `SAME`, with an
    odd rest at the top and on the left.
    """

    NONE = 0
    SAME = 1
    VALID = 2
    SAME_LOWER = 3

    @property
    def keeps_size(self) -> bool:
        """Whether it is one of the two that give `ceil(size / stride)` windows."""
        return self in (AutoPad.SAME, AutoPad.SAME_LOWER)

    def divided(self, total: int) -> tuple[int, int]:
        """A number of pixels as those before and those after an image."""
        less, more = total // 2, -(-total // 2)
        return (more, less) if self is AutoPad.SAME_LOWER else (less, more)


@dataclass(frozen=True, slots=True)
class Windows:
    """Where windows lie on an image; pairs are of height and width.

    Attributes:
        kernel: how many elements a window has.
        strides: how far it is from one window to the next.
        dilations: how far it is from one element of a window to the next.
        auto_pad: how much the image is padded.
        pads: the padding, where `auto_pad` is `NONE`.
        ceil: whether a last window may reach beyond the padding.
        inside: whether every window must start in the image or in the padding before it.
    """

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    auto_pad: AutoPad
    pads: Sequence[int]
    ceil: bool = False
    inside: bool = False

    def check(self) -> None:
        """`ValueError` if a number is out of its range; the message starts with the slot."""
        for slot, numbers, least in (
            ("strides", self.strides, 1),
            ("dilations", self.dilations, 1),
            ("kernel_shape", self.kernel, 1),
            ("pads", self.pads, 0),
        ):
            if min(numbers) < least:
                rule = "positive" if least else "0 or more"
                raise ValueError(f"{slot}: {list(numbers)} are not all {rule}")

    @property
    def spans(self) -> tuple[int, int]:
        """How many pixels a dilated window covers."""
        return extent(self.kernel[0], self.dilations[0]), extent(self.kernel[1], self.dilations[1])

    def counts(self, image: Sequence[Dim]) -> Shape:
        """How many windows there are.

        Raises:
            ValueError: a number is out of its range, or not even one window fits.
        """
        self.check()
        return tuple(self._count(axis, image[axis]) for axis in range(2))

    def static_counts(self, image: Sequence[int]) -> tuple[int, ...]:
        """How many windows there are on an image of known size."""
        return static(self.counts(image))

    def sides(self, image: Sequence[int]) -> Pads:
        """The padding, `auto_pad` resolved."""
        before, after = zip(*(self._side(axis, image[axis]) for axis in range(2)), strict=True)
        return before[0], after[0], before[1], after[1]

    def padding(self, image: Sequence[int]) -> Pads:
        """The padding as far as windows need it, at the end more or less than `sides`."""
        counts, (top, _, left, _) = self.static_counts(image), self.sides(image)
        after = [
            (counts[axis] - 1) * self.strides[axis] + self.spans[axis] - image[axis] - before
            for axis, before in enumerate((top, left))
        ]
        return top, max(0, after[0]), left, max(0, after[1])

    def rounded_down(self, image: Sequence[int]) -> Windows:
        """The same windows with padding as far as they reach, so that nothing is rounded up."""
        padding = self.padding(image)
        return Windows(self.kernel, self.strides, self.dilations, AutoPad.NONE, padding)

    def population(self, image: Sequence[int], *, with_padding: bool) -> Array:
        """How many pixels each window has, of the image or of the image with its padding."""
        ones, padding = np.ones((1, 1, *image)), self.padding(image)
        counted = pad_image(ones, self.sides(image), 1) if with_padding else ones
        beyond = [
            max(0, wide - side) for wide, side in zip(padding, self.sides(image), strict=True)
        ]
        padded = pad_image(counted, beyond if with_padding else padding, 0)
        pixels = sliding_windows(
            padded, self.kernel, self.strides, self.dilations, self.static_counts(image)
        )
        return np.sum([part for _, _, part in pixels], axis=0)

    def sliding_windows(self, image: Array, border: float) -> Iterator[tuple[int, int, Array]]:
        """For each element (i, j) of a window, the [N, C, rows, columns] pixels that it meets.

        Pixels outside the image are `border`.
        """
        counts = self.static_counts(image.shape[2:])
        padded = pad_image(image, self.padding(image.shape[2:]), border)
        return sliding_windows(padded, self.kernel, self.strides, self.dilations, counts)

    def _given(self, axis: int) -> tuple[int, int]:
        before, after = self.pads[2 * axis : 2 * axis + 2]
        return (before, after) if self.auto_pad is AutoPad.NONE else (0, 0)

    def _side(self, axis: int, size: int) -> tuple[int, int]:
        if not self.auto_pad.keeps_size:
            return self._given(axis)
        stride = self.strides[axis]
        needed = (-(-size // stride) - 1) * stride + self.spans[axis]
        return self.auto_pad.divided(max(0, needed - size))

    def _count(self, axis: int, size: Dim) -> Dim:
        stride, span = self.strides[axis], self.spans[axis]
        if self.auto_pad.keeps_size:
            return ceil_div(size, stride)
        before, after = self._given(axis)
        count = window_count(size + before + after, span, stride, ceil=self.ceil)
        if not (self.ceil and self.inside) or after + stride <= span:
            return count
        if isinstance(count, int) and isinstance(size, int):
            return count - 1 if (count - 1) * stride >= size + before else count
        return unknown()


def is_static(sizes: Sequence[Dim]) -> bool:
    """Whether every size is a number."""
    return all(isinstance(size, int) for size in sizes)


def static(sizes: Sequence[Dim]) -> tuple[int, ...]:
    """The sizes, all of which are numbers; `UnknownRank` if one is not."""
    found = tuple(size for size in sizes if isinstance(size, int))
    if len(found) != len(sizes):
        raise UnknownRank
    return found


def extent(kernel: int, dilation: int) -> int:
    """How many pixels a dilated kernel spans."""
    return dilation * (kernel - 1) + 1


def pad_image(image: Array, pads: Sequence[int], value: float) -> Array:
    """An [N, C, H, W] image with a border of one value."""
    if not any(pads):
        return image
    top, bottom, left, right = pads
    return np.pad(image, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)


def sliding_windows(
    padded: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    counts: Sequence[int],
) -> Iterator[tuple[int, int, Array]]:
    """Views of an image with its padding: for each element (i, j) of a kernel, its pixels."""
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            rows, columns = (
                slice(first * dilation, first * dilation + (count - 1) * stride + 1, stride)
                for first, dilation, count, stride in zip(
                    (i, j), dilations, counts, strides, strict=True
                )
            )
            yield i, j, padded[:, :, rows, columns]
