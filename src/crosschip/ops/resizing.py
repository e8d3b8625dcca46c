"""Resampling of [N, C, H, W] images to another height and width."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from crosschip.ir import Array, Dim, Shape, unknown
from crosschip.ir.types import FLOATS
from crosschip.ops.convolution import four
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.slots import (
    ComputedParameter,
    choice,
    flag,
    optional_integers,
    optional_reals,
    tensor,
)


class AlignMode(IntEnum):
    """Where the pixels of the two images lie, unless their corners are aligned.

    `HALF_PIXEL`: `source = (target + 0.5) * ratio - 0.5`. `ASYMMETRIC`: `source = target * ratio`.
    """

    HALF_PIXEL = 0
    ASYMMETRIC = 1


class _Resize(Operator):
    """Base of resamplings to `shape` (height, width), or by `scales` where that is left out.

    A scaled size is `floor(size * scale)`. Source and target pixels are related by `ratio = 1 /
    scale`, `size / new_size` where `shape` is given, and `(size - 1) / (new_size - 1)` with
    `align_corners` (0 where the new size is 1); all in float32.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    shape = optional_integers(2)
    scales = optional_reals(2)
    align_corners = flag(False)

    def infer_shape(self) -> Shape:
        batch, channels, *image = four(shape_of(self.input), "input")
        if self.operand("shape") is None and self.operand("scales") is None:
            raise ValueError("shape: either it or scales must be given")
        try:
            return (batch, channels, *self._sizes(image))
        except ComputedParameter:
            return (batch, channels, unknown(), unknown())

    def _sizes(self, image: Sequence[Dim]) -> Sequence[Dim]:
        if self.operand("shape") is not None:
            return self.shape or ()
        return [_scaled(size, scale) for size, scale in zip(image, self.scales or (), strict=True)]

    @staticmethod
    def ratios(
        image: Sequence[int],
        shape: Sequence[int] | None,
        scales: Sequence[float] | None,
        align_corners: bool,
    ) -> list[tuple[int, np.float32]]:
        """For each axis, the new size and the step in the source for one in the target."""
        found = []
        for axis in range(2):
            scale = None if shape or not scales else scales[axis]
            new = int(shape[axis]) if shape else _scaled_size(image[axis], scale or 1)
            if align_corners:
                ratio = (image[axis] - 1) / (new - 1) if new > 1 else 0.0
            else:
                ratio = 1 / scale if scale else image[axis] / new
            found.append((new, np.float32(ratio)))
        return found


@operator("RESIZE_NEAREST")
class ResizeNearest(_Resize):
    """The source pixel at `floor(target * ratio)`; the nearest, half up, with `align_corners`."""

    __slots__ = ()

    def reference(
        self,
        input: Array,
        shape: Sequence[int] | None,
        scales: Sequence[float] | None,
        align_corners: bool,
    ) -> Array:
        def sources(new: int, ratio: np.float32, size: int) -> Array:
            exact = np.arange(new, dtype=np.float32) * ratio
            index = np.floor(exact + np.float32(0.5) if align_corners else exact)
            return np.minimum(index.astype(np.int64), size - 1)

        image = input.shape[2:]
        found = self.ratios(image, shape, scales, align_corners)
        rows, columns = (sources(*found[axis], image[axis]) for axis in range(2))
        return input[:, :, rows[:, None], columns]


@operator("RESIZE_LINEAR")
class ResizeLinear(_Resize):
    """Bilinear interpolation of the four source pixels around a place; the border is extended.

    `align_mode` says where the place is, unless `align_corners` does: `source = target * ratio`.
    """

    __slots__ = ()
    align_mode = choice(AlignMode, AlignMode.HALF_PIXEL)

    def reference(
        self,
        input: Array,
        shape: Sequence[int] | None,
        scales: Sequence[float] | None,
        align_corners: bool,
        align_mode: AlignMode,
    ) -> Array:
        output = input
        found = self.ratios(input.shape[2:], shape, scales, align_corners)
        for axis, (new, ratio) in zip((2, 3), found, strict=True):
            places = np.arange(new, dtype=np.float32)
            if align_mode is AlignMode.HALF_PIXEL and not align_corners:
                places = (places + np.float32(0.5)) * ratio - np.float32(0.5)
            else:
                places = places * ratio
            output = _interpolate(output, np.maximum(places, 0), axis)
        return output


def _interpolate(image: Array, places: Array, axis: int) -> Array:
    last = image.shape[axis] - 1
    low = np.minimum(places.astype(np.int64), last)
    high = np.minimum(low + 1, last)
    weight = (places - low).astype(np.float32)
    weight = weight.reshape((-1,) + (1,) * (image.ndim - 1 - axis))
    return np.take(image, low, axis) * (1 - weight) + np.take(image, high, axis) * weight


def _scaled(size: Dim, scale: float) -> Dim:
    if isinstance(size, int):
        return _scaled_size(size, scale)
    if float(scale).is_integer():
        return size * int(scale)
    return unknown()


def _scaled_size(size: int, scale: float) -> int:
    if not 0 <= size * scale < 2**31:
        raise ValueError(f"scales: {scale} is no factor for a size of {size}")
    return int(np.floor(np.float32(size) * np.float32(scale)))
