"""Operators that move elements: layout, joining, slicing, padding, rearranging, conversion."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.devices.kits.tflite.converters.table import (
    ANY_BYTES,
    INDICES,
    MAX_TRANSPOSED,
    MOVABLE,
    SINGLE,
    WORDS,
    converts,
    max_rank,
    rank_of,
    shape_of,
    unary_forms,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import BOOLEANS
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Assign, BitCast, Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split, Stack, Unstack
from crosschip.ops.standard.layout import (
    Expand,
    Flatten,
    Reshape,
    Squeeze,
    Transpose,
    Unsqueeze,
)
from crosschip.ops.standard.padding import NUMPY_MODES, Pad, PadMode
from crosschip.ops.standard.rearranging import ReverseSequence, Tile
from crosschip.ops.standard.slicing import Slice

_MAX_RANK = 5
_BROADCAST = MOVABLE - {ElementType.FLOAT16}
_UNPACKED = SINGLE | {ElementType.INT32, ElementType.INT8, ElementType.UINT8, ElementType.INT16}
_MIRRORED = SINGLE | INDICES | {ElementType.INT8, ElementType.UINT8}
_PADDED = SINGLE | INDICES | {ElementType.INT8, ElementType.UINT8, ElementType.INT16} | BOOLEANS


@converts(Reshape, Squeeze, Unsqueeze, Flatten, Assign, types=MOVABLE, computed={"shape", "axes"})
def reshape(g: Graph, op: Operator) -> Operand:
    return g.add_reshape(op.filled()[0][1], op.outputs[0].type)


@converts(Transpose, types=MOVABLE, limit=max_rank(MAX_TRANSPOSED))
def transpose(g: Graph, op: Transpose) -> Operand:
    rank = rank_of(op.input)
    perm = [axis % rank for axis in op.perm]
    shape = shape_of(op.input)
    if [axis for axis in perm if shape[axis] != 1] == [a for a in range(rank) if shape[a] != 1]:
        return g.add_reshape(op.input, op.outputs[0].type)
    return g.native("TRANSPOSE", op.input, g.int32(perm), type=op.outputs[0].type)


@converts(Expand, types=_BROADCAST, limit=max_rank(8), nonempty=True, computed={"shape"})
def expand(g: Graph, op: Expand) -> Operand:
    return g.native(
        "BROADCAST_TO", op.input, g.int32(shape_of(op.outputs[0])), type=op.outputs[0].type
    )


@converts(Concat, types=MOVABLE)
def concat(g: Graph, op: Concat) -> Operand:
    axis = op.axis % rank_of(op.outputs[0])
    parts = [part for part in op.parts if axis >= rank_of(part) or shape_of(part)[axis]]
    return g.native("CONCATENATION", *(parts or op.parts), type=op.outputs[0].type, axis=axis)


@converts(Stack, types=MOVABLE - BOOLEANS - {ElementType.FLOAT16})
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


@converts(
    Split, types=MOVABLE - BOOLEANS - {ElementType.FLOAT16}, limit=_split_limit, nonempty=True
)
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
    if 0 in shape_of(op.input):
        return Refusal("input", "has no elements", Rule.SHAPE)
    if op.value is not None and op.value.type.quantization != op.input.type.quantization:
        return Refusal("value", "is not quantized as the input", Rule.QUANTIZATION)
    if op.input.type.quantization != op.outputs[0].type.quantization:
        return Refusal("output", "is not quantized as the input", Rule.QUANTIZATION)
    return max_rank(_MAX_RANK)(op)


@converts(
    Pad,
    types=_PADDED,
    limit=_pad_limit,
    quantized=[{**form, "value": form["input"]} for form in unary_forms(ANY_BYTES, WORDS)],
)
def pad(g: Graph, op: Pad) -> Operand:
    if min(op.pads, default=0) < 0:
        return _cropped(g, op)
    if op.mode in (PadMode.REFLECT, PadMode.SYMMETRIC) and _is_mirrored(op):
        pads = g.int32(np.reshape(op.pads, (-1, 2)))
        type_ = op.outputs[0].type
        return g.native("MIRROR_PAD", op.input, pads, type=type_, mode=op.mode.name)
    if op.mode not in (PadMode.NONE, PadMode.CONSTANT):
        return _gathered(g, op)
    pads = g.int32(np.reshape(op.pads, (-1, 2)))
    if op.value is None:
        return g.native("PAD", op.input, pads, type=op.outputs[0].type)
    return g.native("PADV2", op.input, pads, op.value, type=op.outputs[0].type)


def _cropped(g: Graph, op: Pad) -> Operand:
    """Remove elements as a slice, before others are added."""
    sides = np.reshape(op.pads, (-1, 2))
    sizes = np.array(shape_of(op.input))
    starts = np.maximum(-sides[:, 0], 0)
    ends = sizes - np.maximum(-sides[:, 1], 0)
    axes = tuple(range(len(sizes)))
    inner = g.add(
        Slice, op.input, axes=axes, starts=tuple(starts.tolist()), ends=tuple(ends.tolist())
    )
    pads = tuple(np.maximum(sides, 0).ravel().tolist())
    return g.add(Pad, inner, pads, mode=op.mode, value=op.value)


def _is_mirrored(op: Pad) -> bool:
    """Return whether `MIRROR_PAD` has the type, and the padding is not wider than the tensor."""
    if op.input.type.element_type not in _MIRRORED:
        return False
    least = 1 if op.mode is PadMode.REFLECT else 0
    sides = zip(op.pads[::2], op.pads[1::2], shape_of(op.input), strict=True)
    return all(max(before, after) <= size - least for before, after, size in sides)


def _gathered(g: Graph, op: Pad) -> Operand:
    """Add a padding of the tensor's own elements, axis by axis."""
    output = op.input
    mode: Any = NUMPY_MODES[op.mode]
    for axis, size in enumerate(shape_of(op.input)):
        sides = op.pads[2 * axis : 2 * axis + 2]
        if any(sides):
            indices = np.pad(np.arange(size), sides, mode=mode)
            output = g.add(Gather, output, indices.astype(np.int32), axis=axis)
    return output


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


_BIT_CAST = frozenset(
    map(ElementType, ("float32", "int32", "uint32", "int16", "uint16", "int8", "uint8"))
)


def _bit_cast_limit(op: BitCast) -> Refusal | None:
    sizes = {o.type.element_type.dtype.itemsize for o in (op.input, *op.outputs)}
    return Refusal("dtype", "is of another size") if len(sizes) > 1 else None


@converts(BitCast, types=_BIT_CAST, limit=_bit_cast_limit, nonempty=True)
def bit_cast(g: Graph, op: BitCast) -> Operand:
    return g.native("BITCAST", op.input, type=op.outputs[0].type)


@converts(Cast, types=_CAST)
def cast(g: Graph, op: Cast) -> Operand:
    return g.native(
        "CAST",
        op.input,
        type=op.outputs[0].type,
        in_data_type=op.input.type.element_type,
        out_data_type=op.outputs[0].type.element_type,
    )
