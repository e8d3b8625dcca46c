"""Operators that move blocks of pixels between axes, and columns to images."""

from __future__ import annotations

import math

import numpy as np

from crosschip.importers.facts import size_of, static_shape_of, value_of
from crosschip.importers.onnx.node import Node, bounded, imports, only
from crosschip.ir import Array, ModelError, Operand
from crosschip.ops.standard.blocks import DepthOrder, DepthToSpace, SpaceToDepth
from crosschip.ops.standard.indexing import Gather, Scatter, ScatterND
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.slicing import Slice


@imports("Col2Im")
def col2im(node: Node) -> Operand:
    """Import Col2Im: sum overlapping blocks into an image; drop pixels in the padding.

    The input is [N, C * block size, L], for L positions of the block.
    """
    image = tuple(value_of(node[1], "the image's shape").ravel().tolist())
    block = tuple(value_of(node[2], "the block's shape").ravel().tolist())
    rank = len(image)
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * 2 * rank)
    batch, columns, count = static_shape_of(node[0])
    size, pixels = math.prod(block), math.prod(image)
    bounded(max(size * count, (pixels + 1) * batch * columns))
    if columns % max(1, size):
        raise ModelError(f"{columns} columns are not those of blocks of {size} elements")
    channels = columns // size
    indices = _pixel_indices(image, block, strides, dilations, pads)
    if indices.shape != (size, count):
        raise ModelError(f"a block has {indices.shape[1]} positions, but there are {count} blocks")
    by_index = node.add(Reshape, node[0], (batch, channels, size * count))
    by_index = node.add(Transpose, by_index, (2, 0, 1))
    zeros = np.zeros((pixels + 1, batch, channels), node[0].type.element_type.dtype)
    summed = node.add(ScatterND, zeros, indices.reshape(-1, 1), by_index, Scatter.ADD)
    inside = node.add(Slice, summed, axes=(0,), starts=(0,), ends=(pixels,))
    return node.add(Reshape, node.add(Transpose, inside, (1, 2, 0)), (batch, channels, *image))


def _pixel_indices(
    image: tuple[int, ...],
    block: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[int, ...],
) -> Array:
    """Return an array [elements of a block, positions] of flat pixel indices.

    Elements in the padding get the number of pixels as their index.
    """
    rank = len(image)
    if not rank == len(block) == len(strides) == len(dilations) == len(pads) // 2:
        raise ModelError(f"strides, dilations or pads are not those of {rank} axes")
    if min(*image, *block, *strides, *dilations) < 1:
        raise ModelError("shapes, strides and dilations must be positive")
    index, outside = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.bool_)
    for axis in range(rank):
        before, after = pads[axis], pads[rank + axis]
        span = dilations[axis] * (block[axis] - 1) + 1
        starts = np.arange(0, image[axis] + before + after - span + 1, strides[axis])
        pixel = np.arange(block[axis])[:, None] * dilations[axis] + starts - before
        index = _outer(index * image[axis], pixel, np.add)
        outside = _outer(outside, (pixel < 0) | (pixel >= image[axis]), np.logical_or)
    return np.where(outside, math.prod(image), index)


def _outer(left: Array, right: Array, combine: np.ufunc) -> Array:
    """Combine all pairs of rows with all pairs of columns."""
    rows, columns = left.shape[0] * right.shape[0], left.shape[1] * right.shape[1]
    pairs: Array = combine(left[:, None, :, None], right[None, :, None, :])
    return pairs.reshape(rows, columns)


@imports("DepthToSpace")
def depth_to_space(node: Node) -> Operand:
    # The attribute exists since opset 28; older schemas lack its default.
    mode = only("mode", node.text("mode", "DCR"), *DepthOrder.__members__)
    return node.add(DepthToSpace, node[0], node.integer("blocksize"), DepthOrder[mode])


@imports("SpaceToDepth")
def space_to_depth(node: Node) -> Operand:
    """Import SpaceToDepth; mode `CRD` orders channels before positions in the block."""
    # The attribute exists since opset 28; older schemas lack its default.
    mode = only("mode", node.text("mode", "DCR"), *DepthOrder.__members__)
    block = node.integer("blocksize")
    blocks = node.add(SpaceToDepth, node[0], block)
    if mode == "DCR":
        return blocks
    channels = size_of(node[0], 1)
    order = np.arange(channels * block * block).reshape(-1, channels).T.ravel()
    return node.add(Gather, blocks, order, 1)
