"""Changes of shape and of the order of elements."""

from __future__ import annotations

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import (
    DepthToSpaceOptions,
    ReshapeOptions,
    ReverseSequenceOptions,
    SpaceToDepthOptions,
    SqueezeOptions,
)
from crosschip.importers.facts import rank_of, size_of, static_shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard.blocks import DepthToSpace, SpaceToDepth
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.creation import Rank, ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.rearranging import ReverseSequence, Tile
from crosschip.ops.standard.slicing import Slice

_WHOLE = np.iinfo(np.int32).max


@imports("RESHAPE")
def reshape(node: Node) -> Operand:
    """Import a new shape: the second input, or else the options."""
    operand = node.optional(1)
    if operand is None:
        shape = node.options(ReshapeOptions).new_shape
        sizes = () if shape is None else tuple(map(int, shape))
        return node.add(Reshape, node[0], () if sizes == (0,) else sizes, allow_zero=True)
    if operand.value is None:
        return node.add(Reshape, node[0], operand, allow_zero=True)
    sizes = tuple(int(size) for size in operand.value.ravel())
    return node.add(Reshape, node[0], sizes, allow_zero=True)


@imports("TRANSPOSE")
def transpose(node: Node) -> Operand:
    rank = rank_of(node[0])
    axes = [normalize_axis(int(a), rank) for a in node.value(1, "the permutation").ravel()]
    return node.add(Transpose, node[0], tuple(axes))


@imports("SQUEEZE")
def squeeze(node: Node) -> Operand:
    axes = node.options(SqueezeOptions).squeeze_dims
    rank = rank_of(node[0]) - node.is_complex(0)
    if axes is not None and len(axes):
        return node.add(Squeeze, node[0], axes=tuple(normalize_axis(int(a), rank) for a in axes))
    shape = static_shape_of(node[0])[:rank]
    ones = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return node.add(Squeeze, node[0], axes=ones) if ones else node[0]


@imports("EXPAND_DIMS")
def expand_dims(node: Node) -> Operand:
    return node.add(Unsqueeze, node[0], axes=(int(node.value(1, "the axis").item()),))


@imports("SHAPE")
def shape(node: Node) -> Operand:
    return node.add(ShapeOf, node[0], dtype=node.output().element_type)


@imports("RANK")
def rank(node: Node) -> Operand:
    return node.add(Rank, node[0])


@imports("BROADCAST_TO")
def broadcast_to(node: Node) -> Operand:
    return node.add(Expand, node[0], node[1])


@imports("BROADCAST_ARGS")
def broadcast_args(node: Node) -> Operand:
    """Import the shape to which two shapes are broadcast: of two sizes, the one that is not 1."""
    shapes = [node[0], node[1]]
    counts = [static_shape_of(each)[0] for each in shapes]
    for index, count in enumerate(counts):
        if count < max(counts):
            ones = node.constant(
                np.ones(max(counts) - count, shapes[index].type.element_type.dtype)
            )
            shapes[index] = node.add(Concat, parts=[ones, shapes[index]], axis=0)
    one = node.constant(np.ones((), shapes[0].type.element_type.dtype))
    return node.add(Where, node.add(Equal, shapes[0], one), shapes[1], shapes[0])


@imports("DEPTH_TO_SPACE")
def depth_to_space(node: Node) -> Operand:
    size = node.options(DepthToSpaceOptions).block_size
    return node.channels_last(node.add(DepthToSpace, node.channels_first(node[0]), size))


@imports("SPACE_TO_DEPTH")
def space_to_depth(node: Node) -> Operand:
    size = node.options(SpaceToDepthOptions).block_size
    return node.channels_last(node.add(SpaceToDepth, node.channels_first(node[0]), size))


@imports("SPACE_TO_BATCH_ND")
def space_to_batch_nd(node: Node) -> Operand:
    """Import padding, and the entries of blocks as entries of the batch."""
    block = [int(size) for size in node.value(1, "the block shape").ravel()]
    pads = [int(size) for size in node.value(2, "the list of paddings").ravel()]
    rank = rank_of(node[0])
    padded = node.add(Pad, node[0], (0, 0, *pads, *[0, 0] * (rank - 1 - len(block))))
    image = [size_of(padded, axis) for axis in range(1, rank)]
    split = [-1]
    for axis, size in enumerate(image):
        split += [size // block[axis], block[axis]] if axis < len(block) else [size]
    blocks = [2 + 2 * axis for axis in range(len(block))]
    others = [axis for axis in range(1, len(split)) if axis not in blocks]
    moved = node.add(Transpose, node.add(Reshape, padded, tuple(split)), (*blocks, 0, *others))
    return node.add(Reshape, moved, (-1, *(split[axis] for axis in others)))


@imports("BATCH_TO_SPACE_ND")
def batch_to_space_nd(node: Node) -> Operand:
    """Import the entries of the batch as entries of blocks, and cropping."""
    block = [int(size) for size in node.value(1, "the block shape").ravel()]
    crops = [int(size) for size in node.value(2, "the list of crops").ravel()]
    image = [size_of(node[0], axis) for axis in range(1, rank_of(node[0]))]
    count = len(block)
    parted = node.add(Reshape, node[0], (*block, -1, *image))
    axes = [count]
    for axis in range(count):
        axes += [count + 1 + axis, axis]
    axes += range(2 * count + 1, count + 1 + len(image))
    sizes = [size * block[axis] if axis < count else size for axis, size in enumerate(image)]
    whole = node.add(Reshape, node.add(Transpose, parted, tuple(axes)), (-1, *sizes))
    return node.add(
        Slice,
        whole,
        axes=tuple(range(1, count + 1)),
        starts=tuple(crops[::2]),
        ends=tuple(sizes[axis] - after for axis, after in enumerate(crops[1::2])),
    )


@imports("REVERSE_V2")
def reverse_v2(node: Node) -> Operand:
    axes = tuple(int(axis) for axis in node.value(1, "the list of axes").ravel())
    count = len(axes)
    if not count:
        return node[0]
    steps = (-1,) * count
    return node.add(Slice, node[0], axes=axes, starts=steps, ends=(-_WHOLE,) * count, steps=steps)


@imports("REVERSE_SEQUENCE")
def reverse_sequence(node: Node) -> Operand:
    options = node.options(ReverseSequenceOptions)
    return node.add(
        ReverseSequence,
        node[0],
        node[1],
        time_axis=options.seq_dim,
        batch_axis=options.batch_dim,
    )


@imports("TILE")
def tile(node: Node) -> Operand:
    return node.add(Tile, node[0], node[1])


@imports("MATRIX_DIAG")
def matrix_diag(node: Node) -> Operand:
    """Import matrices with the last axis on their diagonals, and zeros elsewhere."""
    count = size_of(node[0], -1)
    columns = node.add(Unsqueeze, node.integers(node[0]), axes=(rank_of(node[0]),))
    zero = node.constant(np.zeros((), columns.type.element_type.dtype))
    return node.add(Where, node.constant(np.eye(count, dtype=bool)), columns, zero)


@imports("MATRIX_SET_DIAG")
def matrix_set_diag(node: Node) -> Operand:
    """Import matrices with other elements on their diagonals."""
    rows, columns = size_of(node[0], -2), size_of(node[0], -1)
    diagonal = node[1]
    if rows > columns:
        pads = [0] * (2 * rank_of(diagonal))
        pads[-1] = rows - columns
        diagonal = node.add(Pad, diagonal, tuple(pads))
    column = node.add(Unsqueeze, diagonal, axes=(rank_of(diagonal),))
    chosen = node.constant(np.eye(rows, columns, dtype=bool))
    return node.add(Where, chosen, column, node[0])
