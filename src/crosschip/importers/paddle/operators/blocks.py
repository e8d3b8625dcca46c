"""Operators that move blocks of pixels between axes."""

from __future__ import annotations

import math

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.images import Images
from crosschip.ir import ModelError, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, FloorDiv, Mul, Sub
from crosschip.ops.standard.blocks import ChannelShuffle, DepthOrder, DepthToSpace
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.slicing import Slice


@imports("shuffle_channel")
def shuffle_channel(op: Context) -> None:
    op.make(ChannelShuffle, op.input(), op.integer("group"))


@imports("channel_shuffle")
def channel_shuffle(op: Context) -> None:
    images = Images(op)
    images.make(ChannelShuffle, images.input("X"), op.integer("groups", 1))


@imports("pixel_shuffle")
def pixel_shuffle(op: Context) -> None:
    images = Images(op)
    size = op.integer("upscale_factor", 1)
    images.make(DepthToSpace, images.input("X"), size, DepthOrder.CRD)


@imports("unfold")
def unfold(op: Context) -> None:
    """Import im2col: windows of zero-padded images, [N, C * kernel_h * kernel_w, windows]."""
    x, sizes = op.input(), []
    kernel, strides = op.integers("kernel_sizes"), op.integers("strides", (1, 1))
    dilations, pads = op.integers("dilations", (1, 1)), op.integers("paddings", (0, 0, 0, 0))
    if {len(kernel), len(strides), len(dilations)} != {2} or len(pads) != 4 or min(strides) < 1:
        raise ModelError("kernel_sizes, strides, dilations: must be 2 numbers, and paddings 4")
    if any(pads):
        x = op.add(Pad, x, (0, 0, 0, 0, pads[0], pads[2], pads[1], pads[3]))
    for axis in range(2):
        # Gathers rows of [N, C, H, W], and then columns of [N, C, kernel_h, windows_h, W].
        image_axis = 2 + 2 * axis
        offsets = op.constant((np.arange(kernel[axis]) * dilations[axis])[:, None], "offsets")
        size = ragged.size(op, x, image_axis)
        span = op.add(Sub, size, np.int64(dilations[axis] * (kernel[axis] - 1) + 1))
        count = op.add(Add, op.add(FloorDiv, span, np.int64(strides[axis])), np.int64(1))
        starts = op.add(Mul, ragged.arange(op, count), np.int64(strides[axis]))
        x = op.add(Gather, x, op.add(Add, starts, offsets), image_axis)
        sizes.append(count)
    channels = (op.input().type.shape or (None, None))[1]
    rows = -1 if not isinstance(channels, int) else channels * math.prod(kernel)
    columns = op.add(Transpose, x, (0, 1, 2, 4, 3, 5))
    first = ragged.size(op, op.input())
    shape = [op.add(Reshape, first, (1,)), op.constant(np.array([rows], np.int64), "rows")]
    shape.append(op.add(Reshape, op.add(Mul, *sizes), (1,)))
    op.make(Reshape, columns, op.add(Concat, parts=shape, axis=0), output="Y")


@imports("temporal_shift")
def temporal_shift(op: Context) -> None:
    """Shift some channels of each segment to the next segment, and some to the previous one.

    Source: Lin et al., "TSM: Temporal Shift Module for Efficient Video Understanding",
    https://arxiv.org/abs/1811.08383.
    """
    images = Images(op)
    x, count = images.input("X"), op.integer("seg_num")
    shape = x.type.shape or ()
    if len(shape) != 4 or not all(isinstance(size, int) for size in shape[1:]):
        raise UnsupportedError(f"X: {x.type} must be images of known sizes")
    _, channels, height, width = (size if isinstance(size, int) else -1 for size in shape)
    first = int(channels * op.real("shift_ratio", 0.25))
    segments = op.add(Reshape, x, (-1, count, channels, height, width))
    padded = op.add(Pad, segments, (0, 0, 1, 1, 0, 0, 0, 0, 0, 0))
    bounds = ((0, first, 0), (first, 2 * first, 2), (2 * first, channels, 1))
    parts = [
        op.add(Slice, padded, (1, 2), (shift, low), (shift + count, high))
        for low, high, shift in bounds
    ]
    shifted = op.add(Concat, parts=parts, axis=2)
    images.make(Reshape, shifted, (-1, channels, height, width))


@imports("pixel_unshuffle")
def pixel_unshuffle(op: Context) -> None:
    """Move blocks of pixels to the channel axis: [N, C * size * size, H / size, W / size]."""
    images = Images(op)
    x, size = images.input("X"), op.integer("downscale_factor", 1)
    shape = x.type.shape or ()
    if len(shape) != 4 or not all(isinstance(side, int) for side in shape[1:]):
        raise UnsupportedError(f"X: {x.type} must be images of known sizes")
    channels, height, width = (side if isinstance(side, int) else -1 for side in shape[1:])
    if size < 1 or height % size or width % size:
        raise ModelError(f"downscale_factor: {size} does not divide {height} and {width}")
    rows, columns = height // size, width // size
    blocks = op.add(Reshape, x, (-1, channels, rows, size, columns, size))
    transposed = op.add(Transpose, blocks, (0, 1, 3, 5, 2, 4))
    images.make(Reshape, transposed, (-1, channels * size * size, rows, columns))
