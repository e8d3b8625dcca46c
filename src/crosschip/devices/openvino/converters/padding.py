"""Padding."""

from __future__ import annotations

from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    MOVABLE,
    converts,
    is_exact,
    near,
)
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal
from crosschip.hal.limits import padded_once
from crosschip.ops.standard.padding import Pad, PadMode

_MODES = {
    PadMode.REFLECT: "reflect",
    PadMode.REPLICATE: "edge",
    PadMode.EDGE: "edge",
    PadMode.SYMMETRIC: "symmetric",
}


def _padded(op: Pad) -> Refusal | None:
    if op.mode is PadMode.WRAP:
        return Refusal("mode", "WRAP")
    if op.value is not None and op.value.value is None:
        return Refusal("value", "must be constant")
    is_integer = op.input.type.element_type not in FLOAT_TYPES
    if is_integer and op.value is not None and not is_exact(op.value.value):
        return Refusal("value", "is rounded to float32")
    return padded_once(op) or near(op)


@converts(Pad, types=MOVABLE, limit=_padded)
def pad(g: Graph, op: Pad) -> Value:
    if op.input.type.shape == ():
        return g[op.input]
    before, after = g.int64(op.pads[::2]), g.int64(op.pads[1::2])
    value = g.reshaped(op.value, []) if op.value else g.number(0, op.input)
    return ops.pad(g[op.input], before, after, _MODES.get(op.mode, "constant"), value)
