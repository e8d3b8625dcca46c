"""Sampling of images at fractional coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from crosschip.ir import Array, Builder, Operand, Shape
from crosschip.ir.types import FLOATS, INDICES
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, reshape
from crosschip.ops.definition.shapes import require_rank, unify
from crosschip.ops.definition.slots import choice, flag, integer, real, tensor
from crosschip.ops.definition.windows import static
from crosschip.ops.numerics.bilinear import Kernel, Sampler, coordinate_type
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.padding import PadMode


@operator("GRID_SAMPLE")
class GridSample(Operator):
    """The values of an [N, C, H, W] image at the coordinates in a grid.

    `grid` is [N, H_out, W_out, 2]: for each output pixel its x and y coordinates, where -1 and 1
    are the left and right (top and bottom) edges of the image. Edges are the outer sides of the
    border pixels, so `x_pixel = ((x + 1) * W - 1) / 2`, or with `align_corners` their centres, so
    `x_pixel = (x + 1) / 2 * (W - 1)`. The output is [N, C, H_out, W_out].

    `mode` `BILINEAR` weighs the four nearest pixels, `BICUBIC` the sixteen nearest with the weights
    of `RESIZE_CUBIC` (coefficient -0.75), `NEAREST` selects the nearest pixel, ties to even. Pixels
    outside the image are, by `pad_mode`: 0 with `CONSTANT`; the nearest border pixel with `EDGE` or
    `REPLICATE`; with `REFLECT`, those of the image reflected repeatedly at its edges (those that -1
    and 1 stand for).

    Coordinates are computed in the grid's type, but at least in float32, and are clamped to 2 ** 24
    pixels. The output for a coordinate that is NaN or infinite is unspecified, and so is a channel
    of an image that contains NaN or an infinity. An image without pixels is an error.

    Sources: NNAdapter's GRID_SAMPLE (which has no BICUBIC), Paddle's and PyTorch's grid_sample,
    ONNX's GridSample.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    grid = tensor(FLOATS)
    align_corners = flag(True)
    mode = choice(Kernel, Kernel.BILINEAR)
    pad_mode = choice(PadMode, PadMode.CONSTANT)

    def infer_shape(self) -> Shape:
        batch, channels, *image = require_rank(shape_of(self.input), 4, "input")
        grid_batch, height, width, pair = require_rank(shape_of(self.grid), 4, "grid")
        unify(pair, 2, "grid: the size of its last axis, and the coordinates of a place")
        if 0 in image:
            raise ValueError(f"input: an image of {image[0]} by {image[1]} has no pixels")
        if self.pad_mode > PadMode.EDGE:
            raise ValueError(f"pad_mode: {self.pad_mode.name} is not one for samples")
        return (
            unify(batch, grid_batch, "grid: its first size, and the input's"),
            channels,
            height,
            width,
        )

    def reference(self, input: Array, grid: Array) -> Array:
        batch, channels, *image = input.shape
        factor, shift = self._scale(image)
        wide = coordinate_type(self.grid).dtype
        coordinates = (grid.astype(wide) * factor + shift).astype(wide)
        x, y = np.moveaxis(coordinates.reshape(batch, int(np.prod(grid.shape[1:3])), 2), 2, 0)
        sampler = Sampler(image, self.mode, self.pad_mode, self.align_corners)
        values = sampler.sample(input.reshape(batch, channels, image[0] * image[1]), y, x)
        return values.reshape(batch, channels, *grid.shape[1:3])

    def _scale(self, image: Sequence[int]) -> tuple[Array, Array]:
        """Return factors and offsets that convert the grid's x and y to pixels."""
        sizes = np.array([image[1], image[0]], np.float32)
        return (sizes - self.align_corners) / 2, (sizes - 1) / 2

    def decompose(self, b: Builder) -> Operand:
        image, target = static(shape_of(self.input)[2:]), static(shape_of(self.grid)[1:3])
        sampler = Sampler(image, self.mode, self.pad_mode, self.align_corners)
        factor, shift = self._scale(image)
        wide = coordinate_type(self.grid)
        sizes = Sizes(b, self.input)
        batch, channels, *_ = sizes.shape
        count = target[0] * target[1]
        flat_grid = reshape(b, self.grid, sizes, (batch, *target, 2), (batch, count, 2))
        points = b.add(Cast, flat_grid, wide)
        factor, shift = factor.astype(wide.dtype), shift.astype(wide.dtype)
        coordinates = b.add(Add, b.add(Mul, points, factor), shift)
        x, y = (b.add(Gather, coordinates, np.array(axis), axis=2) for axis in range(2))
        pixels = reshape(b, self.input, sizes, sizes.shape, (batch, channels, image[0] * image[1]))
        values = sampler.build(b, pixels, y, x)
        return reshape(b, values, sizes, (batch, channels, count), (batch, channels, *target))


class RoiMode(IntEnum):
    """Reduction of the samples of a cell: their mean or their maximum."""

    AVERAGE = 0
    MAX = 1


@operator("ROI_ALIGN", core=True)
class RoiAlign(Operator):
    """The contents of regions of [N, C, H, W] images, each resampled to a grid of one size.

    `rois` is [R, 4], the x1, y1, x2, y2 of each region; `batch_indices` [R] are the indices of
    their images. Coordinates are multiplied by `spatial_scale` (at least 0), and with `aligned`
    half a pixel is subtracted from them; without it, a region is at least one pixel wide and high.
    The output is [R, C, output_height, output_width]: each cell, `height / output_height` by `width
    / output_width` of the region, is the mean of `n_y * n_x` samples, evenly spaced at `(k + 0.5) /
    n` of the cell. `n` is `sampling_ratio`, or, if that is not positive, `ceil(height /
    output_height)` and `ceil(width / output_width)`; where that is 0 the cell is 0.

    A sample whose y is less than -1 or greater than H (likewise x and W) is 0. Otherwise its
    coordinates are clamped to `[0, H - 1]`, and it is interpolated bilinearly between four pixels.
    With `mode` `MAX` a cell is the maximum, over its samples, of the largest of the four products
    of pixel and weight, as in ONNX.

    Coordinates are computed in the type of `rois`, but at least in float32. If a coordinate or an
    extent is NaN or infinite, before or after scaling, the result is unspecified and may be an
    error. A channel of an image that contains NaN or an infinity gives unspecified values. An index
    out of `[0, N)` is an error.

    Sources: NNAdapter's ROI_ALIGN, Paddle's roi_align, ONNX's RoiAlign; He et al., Mask R-CNN, 2017
    (arXiv:1703.06870).
    """

    __slots__ = ()
    input = tensor(FLOATS)
    rois = tensor(FLOATS)
    batch_indices = tensor(INDICES)
    output_height = integer()
    output_width = integer()
    sampling_ratio = integer(-1)
    spatial_scale = real(1.0, least=0)
    aligned = flag(False)
    mode = choice(RoiMode, RoiMode.AVERAGE)

    def infer_shape(self) -> Shape:
        _, channels, *image = require_rank(shape_of(self.input), 4, "input")
        regions, four_numbers = require_rank(shape_of(self.rois), 2, "rois")
        (indices,) = require_rank(shape_of(self.batch_indices), 1, "batch_indices")
        unify(four_numbers, 4, "rois: the size of its last axis, and the coordinates of a region")
        if 0 in image:
            raise ValueError(f"input: an image of {image[0]} by {image[1]} has no pixels")
        for slot, size in (
            ("output_height", self.output_height),
            ("output_width", self.output_width),
        ):
            if size < 1:
                raise ValueError(f"{slot}: {size} is not positive")
        count = unify(regions, indices, "batch_indices: its size, and the number of rois")
        return (count, channels, self.output_height, self.output_width)

    def reference(self, input: Array, rois: Array, batch_indices: Array) -> Array:
        if np.any((batch_indices < 0) | (batch_indices >= len(input))):
            raise ValueError(
                f"batch_indices: {batch_indices.tolist()} are not in [0, {len(input)})"
            )
        shift = np.array(0.5 * self.aligned, rois.dtype)
        scaled = rois * np.array(self.spatial_scale, rois.dtype) - shift
        extents = scaled[:, 2:] - scaled[:, :2]
        is_finite = np.isfinite(np.hstack([scaled, extents])).all(axis=1, keepdims=True)
        scaled, extents = np.where(is_finite, scaled, 0), np.where(is_finite, extents, 0)
        if not self.aligned:
            extents = np.maximum(extents, 1)
        output = np.zeros(
            (len(rois), input.shape[1], self.output_height, self.output_width), input.dtype
        )
        for cell, corner, extent, image in zip(output, scaled, extents, batch_indices, strict=True):
            (y, y_weights), (x, x_weights) = (
                _samples(corner[1 - axis], extent[1 - axis], count, self.sampling_ratio, size)
                for axis, (count, size) in enumerate(
                    zip((self.output_height, self.output_width), input.shape[2:], strict=True)
                )
            )
            if not (y.size and x.size):
                continue
            pixels = input[image][:, y[:, :, :, None, None, None], x]
            weighted = pixels * (y_weights[:, :, :, None, None, None] * x_weights)
            if self.mode is RoiMode.MAX:
                cell[:] = weighted.max(axis=(2, 3, 5, 6))
            else:
                cell[:] = weighted.sum(axis=(3, 6)).mean(axis=(2, 4))
        return output


def _samples(
    start: np.floating, extent: np.floating, count: int, ratio: int, size: int
) -> tuple[Array, Array]:
    """Return the two pixels of each sample of each cell on one axis, and their weights.

    Both are [count, number of samples, 2].
    """
    samples = ratio if ratio > 0 else max(0, int(np.ceil(extent / count)))
    steps = (np.arange(samples, dtype=extent.dtype) + np.array(0.5, extent.dtype)) / max(samples, 1)
    coordinates = start + (np.arange(count, dtype=extent.dtype)[:, None] + steps) * (extent / count)
    inside = (coordinates >= -1) & (coordinates <= size)
    clamped = np.clip(coordinates, 0, size - 1)
    low = clamped.astype(np.int64)
    part = clamped - low
    pixels = np.stack([low, np.minimum(low + 1, size - 1)], axis=-1)
    weights = np.stack([1 - part, part], axis=-1) * inside[..., None]
    return pixels, weights
