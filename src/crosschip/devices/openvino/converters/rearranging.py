"""Padding, repeating, shifting and reversing, shuffled channels, and ranges."""

from __future__ import annotations

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.limits import along_nothing, padded_once
from crosschip.devices.openvino.converters.table import MOVABLE, converts, rank_of, sizes_only
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard.blocks import ChannelShuffle
from crosschip.ops.standard.creation import Range
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile

_MODES = {
    PadMode.REFLECT: "reflect",
    PadMode.REPLICATE: "edge",
    PadMode.EDGE: "edge",
    PadMode.SYMMETRIC: "symmetric",
}

_LONG = {ElementType.INT32, ElementType.UINT32, ElementType.INT64}


def _padded(op: Pad) -> Refusal | None:
    if op.mode is PadMode.WRAP:
        return Refusal("mode", "WRAP")
    if op.value is not None and op.value.value is None:
        return Refusal("value", "must be constant")
    return padded_once(op) or sizes_only(op)


@converts(Pad, types=MOVABLE, limit=_padded)
def pad(g: Graph, op: Pad) -> Value:
    if op.input.type.shape == ():
        return g[op.input]
    before, after = g.int64(op.pads[::2]), g.int64(op.pads[1::2])
    value = g.reshaped(op.value, []) if op.value else g.number(0, op.input)
    return ops.pad(g[op.input], before, after, _MODES.get(op.mode, "constant"), value)


# With computed repeats on several axes, OpenVINO (2026.4) leaves most of the output unwritten.
@converts(Tile, types=MOVABLE, limit=sizes_only)
def tile(g: Graph, op: Tile) -> Value:
    if op.outputs[0].type.shape == () or along_nothing(op.operand("repeats")):
        # Along no axes, OpenVINO leaves the output unwritten.
        return g[op.input]
    missing = len(op.repeats) - rank_of(op.input)
    # With more repeats than axes, too.
    input = ops.unsqueeze(g[op.input], g.int64(range(missing))) if missing > 0 else g[op.input]
    return ops.tile(input, g.int64(op.repeats))


def _along_axes(op: Roll) -> Refusal | None:
    return Refusal("axes", "must be given") if op.axes is None else sizes_only(op)


@converts(Roll, types=MOVABLE, limit=_along_axes)
def roll(g: Graph, op: Roll) -> Node:
    return ops.roll(g[op.input], g.int64(op.shifts), g.int64(op.axes or ()))


def _reversed(op: ReverseSequence) -> Refusal | None:
    is_long = op.input.type.element_type in _LONG
    return Refusal("input", "long integers are reversed as float32") if is_long else None


@converts(ReverseSequence, types=MOVABLE, limit=_reversed)
def reverse_sequence(g: Graph, op: ReverseSequence) -> Node:
    batch, time = (axis % rank_of(op.input) for axis in (op.batch_axis, op.time_axis))
    lengths = g[op.lengths]
    size = ops.convert(g.size(op.input, time), lengths.get_element_type())
    zero = ops.convert(g.scalar(0), lengths.get_element_type())
    inside = ops.maximum(ops.minimum(lengths, size), zero)
    g.require(op, "lengths: one does not fit in time_axis", ops.equal(lengths, inside))
    return ops.reverse_sequence(g[op.input], inside, batch, time)


@converts(ChannelShuffle, types=MOVABLE, limit=sizes_only)
def channel_shuffle(g: Graph, op: ChannelShuffle) -> Node:
    return ops.shuffle_channels(g[op.input], 1, op.group)


@converts(Range, types=INDICES, limit=sizes_only)
def range_(g: Graph, op: Range) -> Node:
    start, end, step = (g.reshaped(o, []) for o in (op.start, op.end, op.step))
    zero = ops.convert(g.scalar(0), step.get_element_type())
    if op.step.value is None:
        # OpenVINO divides by it.
        g.require(op, "step: is 0", ops.not_equal(step, zero))
        one = ops.convert(g.scalar(1), step.get_element_type())
        step = ops.select(ops.equal(step, zero), one, step)
    # An end on the other side of the start would be taken for one as far away on this side.
    after, before = ops.maximum(start, end), ops.minimum(start, end)
    end = ops.select(ops.greater(step, zero), after, before)
    return ops.range(start, end, step, TYPES[op.outputs[0].type.element_type].to_string())
