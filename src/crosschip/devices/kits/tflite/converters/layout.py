"""Operators that move elements: layout, joining, slicing, padding, rearranging, conversion."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tflite.converters.table import (
    INDICES,
    MOVABLE,
    SINGLE,
    converts,
    max_rank,
    rank_of,
    shape_of,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import BOOLEANS
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.joining import Concat, Split, Stack, Unstack
from crosschip.ops.standard.layout import (
    Expand,
    Flatten,
    Reshape,
    Squeeze,
    Transpose,
    Unsqueeze,
)
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.rearranging import ReverseSequence, Tile
from crosschip.ops.standard.slicing import Slice

_MAX_TRANSPOSED = 6
_MAX_RANK = 5
_BROADCAST = MOVABLE - {ElementType.FLOAT16}
_UNPACKED = SINGLE | {ElementType.INT32, ElementType.INT8, ElementType.UINT8, ElementType.INT16}
_PADDED = SINGLE | INDICES | {ElementType.INT8, ElementType.UINT8, ElementType.INT16} | BOOLEANS


@converts(Reshape, Squeeze, Unsqueeze, Flatten, Assign, types=MOVABLE)
def reshape(g: Graph, op: Operator) -> Operand:
    source, shape = op.filled()[0][1], shape_of(op.outputs[0])
    return g.native(
        "RESHAPE", source, g.int32(shape), type=op.outputs[0].type, new_shape=list(shape)
    )


@converts(Transpose, types=MOVABLE, limit=max_rank(_MAX_TRANSPOSED))
def transpose(g: Graph, op: Transpose) -> Operand:
    rank = rank_of(op.input)
    perm = [axis % rank for axis in op.perm]
    shape = shape_of(op.input)
    if [axis for axis in perm if shape[axis] != 1] == [a for a in range(rank) if shape[a] != 1]:
        sizes = shape_of(op.outputs[0])
        return g.native(
            "RESHAPE", op.input, g.int32(sizes), type=op.outputs[0].type, new_shape=list(sizes)
        )
    return g.native("TRANSPOSE", op.input, g.int32(perm), type=op.outputs[0].type)


@converts(Expand, types=_BROADCAST, limit=max_rank(8), nonempty=True)
def expand(g: Graph, op: Expand) -> Operand:
    return g.native(
        "BROADCAST_TO", op.input, g.int32(shape_of(op.outputs[0])), type=op.outputs[0].type
    )


@converts(Concat, types=MOVABLE)
def concat(g: Graph, op: Concat) -> Operand:
    axis = op.axis % rank_of(op.outputs[0])
    parts = [part for part in op.parts if axis >= rank_of(part) or shape_of(part)[axis]]
    return g.native("CONCATENATION", *(parts or op.parts), type=op.outputs[0].type, axis=axis)


@converts(Stack, types=MOVABLE - {ElementType.FLOAT16})
def stack(g: Graph, op: Stack) -> Operand:
    axis = op.axis % rank_of(op.outputs[0])
    count = len(op.parts)
    return g.native("PACK", *op.parts, type=op.outputs[0].type, axis=axis, values_count=count)


@converts(Unstack, types=_UNPACKED, nonempty=True)
def unstack(g: Graph, op: Unstack) -> tuple[Operand, ...]:
    axis, types = op.axis % rank_of(op.input), [output.type for output in op.outputs]
    return g.natives("UNPACK", [op.input], types, axis=axis, num=len(types))


def _split_limit(op: Split) -> Refusal | None:
    return Refusal("split", "a piece has no elements", Rule.SHAPE) if 0 in op.split else None


@converts(Split, types=MOVABLE - {ElementType.FLOAT16}, limit=_split_limit, nonempty=True)
def split(g: Graph, op: Split) -> tuple[Operand, ...]:
    axis, types = op.axis % rank_of(op.input), [output.type for output in op.outputs]
    operands = [op.input, g.int32(op.split), g.int32(axis)]
    return g.natives("SPLIT_V", operands, types, num_splits=len(types))


@converts(Slice, types=MOVABLE - {ElementType.FLOAT16}, limit=max_rank(_MAX_RANK), nonempty=True)
def slice_(g: Graph, op: Slice) -> Operand:
    ranges = ranges_of(op)
    sizes, type_ = shape_of(op.outputs[0]), op.outputs[0].type
    if all(each.step == 1 for each in ranges):
        begin = g.int32([each.start for each in ranges])
        return g.native("SLICE", op.input, begin, g.int32(sizes), type=type_)
    backwards = sum(1 << axis for axis, r in enumerate(ranges) if r.step < 0 and r.stop < 0)
    return g.native(
        "STRIDED_SLICE",
        op.input,
        g.int32([each.start for each in ranges]),
        g.int32([each.stop for each in ranges]),
        g.int32([each.step for each in ranges]),
        type=type_,
        begin_mask=0,
        end_mask=backwards,
        ellipsis_mask=0,
        new_axis_mask=0,
        shrink_axis_mask=0,
    )


def ranges_of(op: Slice) -> list[range]:
    """Return the indices that a slice takes from each axis of its input."""
    shape = shape_of(op.input)
    axes = op.axes if op.axes is not None else tuple(range(len(op.starts)))
    steps = op.steps or (1,) * len(axes)
    ranges = [range(size) for size in shape]
    for axis, start, end, step in zip(axes, op.starts, op.ends, steps, strict=True):
        to_first = step < 0 and end < -(2**30)
        bounds = slice(start, None if to_first else end, step)
        ranges[axis % len(shape)] = range(*bounds.indices(shape[axis % len(shape)]))
    return ranges


def _pad_limit(op: Pad) -> Refusal | None:
    if min(op.pads, default=0) < 0:
        return Refusal("pads", f"{list(op.pads)}: nothing is removed")
    if op.mode is PadMode.REFLECT:
        for axis, size in enumerate(shape_of(op.input)):
            if max(op.pads[2 * axis : 2 * axis + 2]) >= size:
                return Refusal("pads", f"{list(op.pads)}: wider than the tensor")
        if op.input.type.element_type in BOOLEANS | {ElementType.INT16}:
            return Refusal("mode", "REFLECT of this type")
    elif op.mode not in (PadMode.NONE, PadMode.CONSTANT):
        return Refusal("mode", op.mode.name)
    if op.value is not None and op.value.type.quantization != op.input.type.quantization:
        return Refusal("value", "is not quantized as the input", Rule.QUANTIZATION)
    return max_rank(_MAX_RANK)(op)


@converts(Pad, types=_PADDED, limit=_pad_limit)
def pad(g: Graph, op: Pad) -> Operand:
    pads = g.int32(np.reshape(op.pads, (-1, 2)))
    if op.mode is PadMode.REFLECT:
        return g.native("MIRROR_PAD", op.input, pads, type=op.outputs[0].type, mode="REFLECT")
    if op.value is None:
        return g.native("PAD", op.input, pads, type=op.outputs[0].type)
    return g.native("PADV2", op.input, pads, op.value, type=op.outputs[0].type)


@converts(Tile, types=SINGLE | INDICES | BOOLEANS | {ElementType.INT8, ElementType.UINT8})
def tile(g: Graph, op: Tile) -> Operand:
    sizes, source = shape_of(op.outputs[0]), op.input
    ones = (1,) * (len(sizes) - rank_of(source))
    if ones:
        source = g.add(Reshape, source, (*ones, *shape_of(source)))
    repeats = (1,) * (len(sizes) - len(op.repeats)) + tuple(op.repeats)
    return g.native("TILE", source, g.int32(repeats), type=op.outputs[0].type)


@converts(ReverseSequence, types=SINGLE | INDICES | {ElementType.UINT8}, nonempty=True)
def reverse_sequence(g: Graph, op: ReverseSequence) -> Operand:
    return g.native(
        "REVERSE_SEQUENCE",
        op.input,
        op.lengths,
        type=op.outputs[0].type,
        seq_dim=op.time_axis % rank_of(op.input),
        batch_dim=op.batch_axis % rank_of(op.input),
    )


_CAST = (
    SINGLE
    | INDICES
    | BOOLEANS
    | {
        ElementType.FLOAT64,
        ElementType.FLOAT16,
        ElementType.INT8,
        ElementType.UINT8,
        ElementType.INT16,
        ElementType.UINT16,
        ElementType.UINT32,
    }
)


@converts(Cast, types=_CAST)
def cast(g: Graph, op: Cast) -> Operand:
    return g.native(
        "CAST",
        op.input,
        type=op.outputs[0].type,
        in_data_type=op.input.type.element_type,
        out_data_type=op.outputs[0].type.element_type,
    )
