"""Padding."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.limits import padded_once
from crosschip.devices.kits.onnx.converters.table import (
    MOVABLE,
    converts,
    refused_unless,
)
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal
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
    if op.mode is PadMode.SYMMETRIC:
        return Refusal("mode", "SYMMETRIC")
    return None if _is_mirrored(op) else padded_once(op)


def _is_mirrored(op: Pad) -> bool:
    """Tell whether it is a mirror image that ONNX Runtime itself might not find enough for."""
    pads = op.operand("pads")
    if op.mode is not PadMode.REFLECT or pads is None or pads.value is None:
        return False
    return min(op.pads, default=0) >= 0


def _mirrored(g: Graph, value: str, axis: int, before: int, after: int) -> str:
    """A tensor with its mirror image at the ends of an axis, as often as it takes."""
    size = g.add("Gather", g.add("Shape", value), g.constant(np.array(axis)))
    one, first = g.constant(np.array(1)), g.constant(np.array(-before))
    places = g.add("Range", first, g.add("Add", size, g.constant(np.array(after))), one)
    # There and back again takes twice as many steps as there are between elements.
    round_trip = g.add("Max", g.add("Mul", g.add("Sub", size, one), g.constant(np.array(2))), one)
    there = g.add("Mod", places, round_trip)
    return g.add("Gather", value, g.add("Min", there, g.add("Sub", round_trip, there)), axis=axis)


def _of_rank(g: Graph, value: str, rank: int) -> str:
    """A tensor, if it has as many axes; else the run fails."""
    shape = g.add("Shape", value)
    own = g.add("Shape", shape)
    holds = g.add("Equal", own, g.int64([rank]))
    return g.add("Reshape", value, refused_unless(g, holds, shape, own), allowzero=1)


def _may_take_too_much(op: Pad) -> bool:
    """Tell whether entries that are not there may be taken away, with others added on that axis."""
    pads = op.operand("pads")
    if pads is None or pads.value is None:
        return True
    sides = zip(op.pads[::2], op.pads[1::2], strict=True)
    shape = op.input.type.shape or (None,) * len(op.pads)
    return any(
        min(pair) < 0 < max(pair) and not isinstance(size, int)
        for pair, size in zip(sides, shape, strict=False)
    )


@converts(Pad, types=_PADDABLE, computed=["pads"], limit=_padded)
def pad(g: Graph, op: Pad) -> str:
    if op.input.type.shape == ():
        return g[op.input]
    if _is_mirrored(op) and padded_once(op) is not None:
        value = g[op.input]
        if op.input.type.shape is None:
            value = _of_rank(g, value, len(op.pads) // 2)
        for axis, (before, after) in enumerate(zip(op.pads[::2], op.pads[1::2], strict=True)):
            value = _mirrored(g, value, axis, before, after) if before or after else value
        return value
    sides = g.add("Reshape", g.indices(op.operand("pads")), g.int64([-1, 2]))
    turned, all_in_a_row = g.add("Transpose", sides, perm=[1, 0]), g.int64([-1])
    if _may_take_too_much(op):
        # ONNX Runtime looks only at what is left after it has padded.
        cropped = g.add("ReduceSum", g.add("Min", turned, g.int64([0])), g.int64([0]), keepdims=0)
        left = g.add("ReduceMin", g.add("Add", g.add("Shape", g[op.input]), cropped))
        holds = g.add("GreaterOrEqual", left, g.int64([0]))
        pads = refused_unless(g, holds, turned, all_in_a_row)
    else:
        pads = g.add("Reshape", turned, all_in_a_row)
    value = g.single(op.value) if op.value else ""
    return g.add("Pad", g[op.input], pads, value, mode=_MODES.get(op.mode, "constant"))
