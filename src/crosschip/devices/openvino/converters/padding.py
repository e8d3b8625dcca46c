"""Padding."""

from __future__ import annotations

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import padded_once
from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    MOVABLE,
    check_uint32,
    converts,
    is_exact,
)
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal
from crosschip.ir.dimension import is_unknown
from crosschip.ops.standard.padding import Pad, PadMode

_MODES = {
    PadMode.REFLECT: "reflect",
    PadMode.REPLICATE: "edge",
    PadMode.EDGE: "edge",
    PadMode.SYMMETRIC: "symmetric",
}


def _check_pad(op: Pad) -> Refusal | None:
    if op.mode is PadMode.WRAP:
        return Refusal("mode", "WRAP")
    if op.value is not None and op.value.value is None:
        return Refusal("value", "must be constant")
    is_integer = op.input.type.element_type not in FLOAT_TYPES
    if is_integer and op.value is not None and not is_exact(op.value.value):
        return Refusal("value", "is rounded to float32")
    return check_uint32(op) if _is_mirrored(op) else padded_once(op) or check_uint32(op)


def _is_mirrored(op: Pad) -> bool:
    """Return whether the reflection may need more elements than the axis has."""
    pads = op.operand("pads")
    if op.mode is not PadMode.REFLECT or pads is None or pads.value is None:
        return False
    shape = op.input.type.shape
    if not shape or min(op.pads) < 0 or padded_once(op) is None:
        return False
    # OpenVINO invents elements for an axis of size 0: runs are checked, if the axis has a name.
    sides = zip(shape, op.pads[::2], op.pads[1::2], strict=True)
    return not any(is_unknown(size) for size, *both in sides if any(both))


def _reflect(g: Graph, value: Value, axis: int, before: int, after: int) -> Node:
    """Reflect a tensor at both ends of an axis, repeatedly if the padding is longer."""
    size = ops.gather(ops.shape_of(value), g.scalar(axis), g.scalar(0))
    one, first = g.scalar(1), g.scalar(-before)
    positions = ops.range(first, ops.add(size, g.scalar(after)), one, "i64")
    round_trip = ops.maximum(ops.multiply(ops.subtract(size, one), g.scalar(2)), one)
    offsets = ops.floor_mod(positions, round_trip)
    return ops.gather(
        value, ops.minimum(offsets, ops.subtract(round_trip, offsets)), g.scalar(axis)
    )


@converts(Pad, types=MOVABLE, limit=_check_pad)
def pad(g: Graph, op: Pad) -> Value:
    if _is_mirrored(op):
        value = g[op.input]
        for axis, (before, after) in enumerate(zip(op.pads[::2], op.pads[1::2], strict=True)):
            value = _reflect(g, value, axis, before, after) if before or after else value
        return value
    before, after = g.int64(op.pads[::2]), g.int64(op.pads[1::2])
    fill = g.reshaped(op.value, []) if op.value else g.number(0, op.input)
    return ops.pad(g[op.input], before, after, _MODES.get(op.mode, "constant"), fill)
