"""Parts of tensors along their axes."""

from __future__ import annotations

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import (
    SplitOptions,
    StridedSliceOptions,
    UnpackOptions,
)
from crosschip.importers.facts import rank_of, size_of, static_shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, ModelError, Operand
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard.arithmetic import Add, Max, Min
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import ScatterND
from crosschip.ops.standard.joining import Split, Unstack
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.slicing import Slice, StridedSlice

_WHOLE = np.iinfo(np.int32).max


@imports("SLICE")
def slice_(node: Node) -> Operand:
    """Import the elements from a position on; a size of -1 is all that remain."""
    begin, size, rank = node[1], node[2], rank_of(node[0])
    axes = tuple(range(rank))
    if begin.value is not None and size.value is not None:
        starts = [int(each) for each in begin.value.ravel()]
        stops = [
            _WHOLE if count < 0 else start + int(count)
            for start, count in zip(starts, size.value.ravel(), strict=True)
        ]
        return node.add(Slice, node[0], axes=axes, starts=tuple(starts), ends=tuple(stops))
    dtype = size.type.element_type.dtype
    zero, whole = (node.constant(np.array(each, dtype)) for each in (0, _WHOLE))
    ends = node.add(Where, node.add(Less, size, zero), whole, node.add(Add, begin, size))
    return node.add(Slice, node[0], axes=axes, starts=begin, ends=ends)


@imports("STRIDED_SLICE")
def strided_slice(node: Node) -> Operand:
    options = node.options(StridedSliceOptions)
    end = node.add(Add, node[1], node[2]) if options.offset else node[2]
    masks = {
        name: getattr(options, name)
        for name in (
            "begin_mask",
            "end_mask",
            "ellipsis_mask",
            "new_axis_mask",
            "shrink_axis_mask",
        )
    }
    return node.add(StridedSlice, node[0], node[1], end, node[3], **masks)


@imports("SPLIT")
def split(node: Node) -> tuple[Operand, ...]:
    axis = normalize_axis(int(node.value(0, "the axis").item()), rank_of(node[1]))
    count, size = node.options(SplitOptions).num_splits, size_of(node[1], axis)
    if count < 1 or size % count:
        raise ModelError(f"cannot split {size} entries into {count} equal parts")
    return node.add_all(Split, node[1], axis, (size // count,) * count)


@imports("SPLIT_V")
def split_v(node: Node) -> tuple[Operand, ...]:
    """Import parts of given sizes; one of -1 has what remains."""
    axis = normalize_axis(int(node.value(2, "the axis").item()), rank_of(node[0]))
    sizes = [int(each) for each in node.value(1, "the list of sizes").ravel()]
    if -1 in sizes:
        remaining = size_of(node[0], axis) - sum(size for size in sizes if size >= 0)
        sizes[sizes.index(-1)] = remaining
    return node.add_all(Split, node[0], axis, tuple(sizes))


@imports("UNPACK")
def unpack(node: Node) -> tuple[Operand, ...]:
    options = node.options(UnpackOptions)
    return node.add_all(Unstack, node[0], axis=options.axis, num=options.num)


@imports("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(node: Node) -> Operand:
    """Import a tensor with a part replaced; the position is clamped so that the part fits."""
    shape, part = static_shape_of(node[0]), static_shape_of(node[1])
    if 0 in part or not shape:
        return node[0] if 0 in part else node[1]
    latest = np.array(shape, np.int32) - np.array(part, np.int32)
    first = node.add(Cast, node[2], ElementType.INT32)
    zeros = node.constant(np.zeros(len(shape), np.int32))
    first = node.add(Min, node.add(Max, first, zeros), node.constant(latest))
    grid = np.stack(np.meshgrid(*map(np.arange, part), indexing="ij"), axis=-1)
    positions = node.add(Add, node.constant(grid.astype(np.int32)), first)
    return node.add(ScatterND, node[0], positions, node[1])
