"""Padding."""

from __future__ import annotations

from crosschip.hal import Refusal
from crosschip.hal.limits import padded_once
from crosschip.hal.onnx.converters.table import (
    MOVABLE,
    converts,
)
from crosschip.hal.onnx.graph import Graph
from crosschip.ir import ElementType
from crosschip.ops.standard.padding import Pad, PadMode

_MODES = {
    PadMode.REFLECT: "reflect",
    PadMode.REPLICATE: "edge",
    PadMode.EDGE: "edge",
    PadMode.WRAP: "wrap",
}
_PADDABLE = MOVABLE - {ElementType.INT16, ElementType.UINT16}


def _padded(op: Pad) -> Refusal | None:
    return Refusal("mode", "SYMMETRIC") if op.mode is PadMode.SYMMETRIC else padded_once(op)


@converts(Pad, types=_PADDABLE, computed=["pads"], limit=_padded)
def pad(g: Graph, op: Pad) -> str:
    if op.input.type.shape == ():
        return g[op.input]
    sides = g.add("Reshape", g.indices(op.operand("pads")), g.int64([-1, 2]))
    pads = g.add("Reshape", g.add("Transpose", sides, perm=[1, 0]), g.int64([-1]))
    value = g.add("Reshape", g[op.value], g.int64([])) if op.value else ""
    return g.add("Pad", g[op.input], pads, value, mode=_MODES.get(op.mode, "constant"))
