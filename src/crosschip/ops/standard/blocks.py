"""Operators that move blocks of images between axes; images are [N, C, H, W].

All of them split axes, transpose, and merge axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape
from crosschip.ir.dimension import exact_quotient, product
from crosschip.ops.definition.kinds import Layout
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, fail_if, reshape
from crosschip.ops.definition.slots import choice, integer, integers
from crosschip.ops.definition.windows import is_static
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.slicing import Slice


class Plan(NamedTuple):
    """Movement of blocks.

    Attributes:
        split: the shape with split axes.
        perm: the order of the split axes in the output.
        merged: the shape with merged axes.
    """

    split: Shape
    perm: Sequence[int]
    merged: Shape


class _Blocks(Layout):
    """Base class of operators that consist of a `Plan`."""

    __slots__ = ()

    def plan(self, shape: Shape) -> Plan:
        """Return the plan for an input shape.

        Raises:
            ValueError: the blocks do not fit the shape.
        """
        raise NotImplementedError(f"{self.type} has no plan")

    def infer_shape(self) -> Shape:
        return self.plan(shape_of(self.input)).merged

    def reference(self, input: Array) -> Array:
        split, perm, merged = self.plan(input.shape)
        parts = input.reshape(cast(Any, split)).transpose(perm)
        return parts.reshape(cast(Any, merged))

    def decompose(self, b: Builder) -> Operand:
        return self.build_plan(b, self.input)

    def build_plan(self, b: Builder, input: Operand) -> Operand:
        """Build the plan from core operators."""
        sizes = Sizes(b, input)
        split, perm, merged = self.plan(sizes.shape)
        parts = reshape(b, input, sizes, sizes.shape, split)
        reordered = [split[axis] for axis in perm]
        return reshape(b, b.add(Transpose, parts, perm), sizes, reordered, merged)


@operator("CHANNEL_SHUFFLE")
class ChannelShuffle(_Blocks):
    """Interleaving of `group` groups of channels (axis 1) of equal size.

    `output[:, k * group + g] = input[:, g * size + k]`, with `size` channels per group. The input
    has rank 2 or more. Source: ShuffleNet, arXiv:1707.01083.
    """

    __slots__ = ()
    group = integer()

    def plan(self, shape: Shape) -> Plan:
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have 2 at least")
        batch, channels, *rest = shape
        size = _divide_exactly(channels, self.group, "group")
        pixels = product(tuple(rest))
        return Plan((batch, self.group, size, pixels), (0, 2, 1, 3), shape)


class DepthOrder(IntEnum):
    """Order of block position and channel in the input's channels."""

    DCR = 0
    """Block position first: channel `(row * size + column) * C + c`."""
    CRD = 1
    """Block position last: channel `c * size ** 2 + row * size + column`."""


@operator("DEPTH_TO_SPACE")
class DepthToSpace(_Blocks):
    """Rearrangement of each pixel's channels to a block of `block_size` by `block_size` pixels.

    `[N, C * size ** 2, H, W]` becomes `[N, C, H * size, W * size]`; `mode` gives the order of
    channels. Source: ONNX's DepthToSpace.
    """

    __slots__ = ()
    block_size = integer()
    mode = choice(DepthOrder, DepthOrder.DCR)

    def plan(self, shape: Shape) -> Plan:
        batch, channels, height, width = _image(shape)
        _check_block_size(self.block_size)
        size = self.block_size
        block = (size, size)
        depth = _divide_exactly(channels, size**2, "block_size: its square")
        first = self.mode is DepthOrder.DCR
        split = (batch, *(block if first else (depth,)), *((depth,) if first else block))
        perm = (0, 3, 4, 1, 5, 2) if first else (0, 1, 4, 2, 5, 3)
        merged = (batch, depth, height * size, width * size)
        return Plan((*split, height, width), perm, merged)


@operator("SPACE_TO_DEPTH")
class SpaceToDepth(_Blocks):
    """Rearrangement of each block of `block_size` by `block_size` pixels to channels of one pixel.

    `[N, C, H * size, W * size]` becomes `[N, C * size ** 2, H, W]`: channel `c` of the pixel in row
    `i`, column `j` of a block becomes channel `(i * size + j) * C + c`. It is the inverse of
    DEPTH_TO_SPACE in mode `DCR`. Source: ONNX's SpaceToDepth.
    """

    __slots__ = ()
    block_size = integer()

    def plan(self, shape: Shape) -> Plan:
        batch, channels, height, width = _image(shape)
        _check_block_size(self.block_size)
        block = self.block_size
        rows, columns = (_divide_exactly(size, block, "block_size") for size in (height, width))
        split = (batch, channels, rows, block, columns, block)
        merged = (batch, channels * block**2, rows, columns)
        return Plan(split, (0, 3, 5, 1, 2, 4), merged)


@operator("BATCH_TO_SPACE_ND")
class BatchToSpaceND(_Blocks):
    """Rearrangement of batch entries to blocks of pixels, and cropping of the images.

    The input is `[N * B, C, H, W]`, with `B` the product of `block_shape`, `[rows, columns]`. Entry
    `(i * columns + j) * N + n` becomes row `i`, column `j` of all blocks of image `n`. `crops` are
    the numbers of pixels to remove: top, bottom, left, right. The output is `[N, C, H * rows - top
    - bottom, W * columns - left - right]`. There may be any number of axes after the channels, with
    a block size and two crops for each. Source: TensorFlow's `batch_to_space_nd`, which NNRt's
    equals.
    """

    __slots__ = ()
    block_shape = integers()
    crops = integers()

    def plan(self, shape: Shape) -> Plan:
        block_shape = self.block_shape
        batch, channels, *space = _spatial(shape, block_shape, self.crops, "crops")
        images = _divide_exactly(batch, int(np.prod(block_shape)), "block_shape: its product")
        enlarged = tuple(size * block for size, block in zip(space, block_shape, strict=True))
        for size, before, after in zip(enlarged, self.crops[::2], self.crops[1::2], strict=True):
            if isinstance(size, int) and before + after > size:
                raise ValueError(f"crops: {before} and {after} are more than the {size} there are")
        rank = len(block_shape)
        spatial_axes = chain.from_iterable((rank + 2 + axis, axis) for axis in range(rank))
        split = (*block_shape, images, channels, *space)
        return Plan(split, (rank, rank + 1, *spatial_axes), (images, channels, *enlarged))

    def infer_shape(self) -> Shape:
        batch, channels, *space = super().infer_shape()
        crops = zip(space, self.crops[::2], self.crops[1::2], strict=True)
        return (batch, channels, *(size - before - after for size, before, after in crops))

    def reference(self, input: Array) -> Array:
        enlarged, crops = super().reference(input), self.crops
        ends = np.array(enlarged.shape[2:]) - crops[1::2]
        box = [slice(None), slice(None), *map(slice, crops[::2], ends.tolist())]
        return enlarged[tuple(box)]

    def decompose(self, b: Builder) -> Operand:
        enlarged, crops = self.build_plan(b, self.input), self.crops
        if not any(crops):
            return enlarged
        axes = range(2, 2 + len(crops) // 2)
        starts = b.constant(np.array(crops[::2]))
        if not is_static(shape_of(enlarged)[2:]):
            both = b.constant(np.array(crops[::2]) + crops[1::2])
            sizes = b.add(Slice, b.add(ShapeOf, enlarged), (0,), (2,), (2 + len(axes),))
            starts = fail_if(b, b.add(Less, sizes, both), starts)
        ends = tuple(-after or 2**31 - 1 for after in crops[1::2])
        return b.add(Slice, enlarged, axes, starts, ends)


@operator("SPACE_TO_BATCH_ND")
class SpaceToBatchND(_Blocks):
    """Padding of the images with 0, and rearrangement of each block's pixels to batch entries.

    The input is `[N, C, H, W]`, `block_shape` is `[rows, columns]`, and `pads` are the numbers of
    pixels to add: top, bottom, left, right. The padded sizes are multiples of the block's. The
    pixel in row `i`, column `j` of a block of image `n` becomes a pixel of entry `(i * columns + j)
    * N + n`. There may be any number of axes after the channels, with a block size and two pads for
    each. Source: TensorFlow's `space_to_batch_nd`, which NNRt's equals.
    """

    __slots__ = ()
    block_shape = integers()
    pads = integers()

    def plan(self, shape: Shape) -> Plan:
        block_shape = self.block_shape
        batch, channels, *space = _spatial(shape, block_shape, self.pads, "pads")
        small = tuple(
            _divide_exactly(size, block, "block_shape")
            for size, block in zip(space, block_shape, strict=True)
        )
        rank = len(block_shape)
        split = (batch, channels, *chain.from_iterable(zip(small, block_shape, strict=True)))
        perm = (*range(3, 3 + 2 * rank, 2), 0, 1, *range(2, 2 + 2 * rank, 2))
        return Plan(split, perm, (batch * int(np.prod(block_shape)), channels, *small))

    def infer_shape(self) -> Shape:
        shape = _spatial(shape_of(self.input), self.block_shape, self.pads, "pads")
        padded = zip(shape[2:], self.pads[::2], self.pads[1::2], strict=True)
        padded_shape = (*shape[:2], *(size + before + after for size, before, after in padded))
        return self.plan(padded_shape).merged

    def reference(self, input: Array) -> Array:
        pads = np.reshape((0, 0, 0, 0, *self.pads), (-1, 2))
        nothing = np.zeros((), input.dtype)  # np.pad cannot cast 0 to all types
        return super().reference(np.pad(input, pads, constant_values=nothing))

    def decompose(self, b: Builder) -> Operand:
        padded = b.add(Pad, self.input, (0, 0, 0, 0, *self.pads)) if any(self.pads) else self.input
        return self.build_plan(b, padded)


def _image(shape: Shape) -> Shape:
    if len(shape) != 4:
        raise ValueError(f"input: has {len(shape)} axes, but must be [N, C, H, W]")
    return shape


def _spatial(shape: Shape, block_shape: Sequence[int], sides: Sequence[int], slot: str) -> Shape:
    """Return the shape; raise ValueError unless the parameters match its spatial axes."""
    if len(shape) != 2 + len(block_shape):
        raise ValueError(f"block_shape: {list(block_shape)} is not for {len(shape) - 2} axes")
    if len(sides) != 2 * len(block_shape) or min(sides, default=0) < 0:
        raise ValueError(f"{slot}: {list(sides)} must be two numbers an axis, none negative")
    return shape


def _check_block_size(block_size: int) -> None:
    if block_size < 1:
        raise ValueError(f"block_size: {block_size} is not positive")


def _divide_exactly(size: Dim, divisor: int, what: str) -> Dim:
    """Return the quotient; raise ValueError if there is known to be a remainder."""
    if divisor < 1:
        raise ValueError(f"{what}: {divisor} is not positive")
    if isinstance(size, int) and size % divisor:
        raise ValueError(f"{what}: {divisor} does not divide {size}")
    return exact_quotient(size, divisor)
