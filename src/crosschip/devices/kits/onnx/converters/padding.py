"""Padding."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.limits import padded_once
from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts, refused_unless
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


def _pad_limit(op: Pad) -> Refusal | None:
    if op.mode is PadMode.SYMMETRIC:
        return Refusal("mode", "SYMMETRIC")
    return None if _is_mirrored(op) else padded_once(op)


def _is_mirrored(op: Pad) -> bool:
    """Return whether padding is `REFLECT` by constant sizes, which may exceed the input's."""
    pads = op.operand("pads")
    if op.mode is not PadMode.REFLECT or pads is None or pads.value is None:
        return False
    return min(op.pads, default=0) >= 0


def _reflect(g: Graph, value: str, axis: int, before: int, after: int) -> str:
    """Return a tensor reflected at the ends of an axis, several times if needed."""
    size = g.add("Gather", g.add("Shape", value), g.constant(np.array(axis)))
    one, first = g.constant(np.array(1)), g.constant(np.array(-before))
    positions = g.add("Range", first, g.add("Add", size, g.constant(np.array(after))), one)
    # Reflection has the period 2 * (size - 1).
    period = g.add("Max", g.add("Mul", g.add("Sub", size, one), g.constant(np.array(2))), one)
    offset = g.add("Mod", positions, period)
    return g.add("Gather", value, g.add("Min", offset, g.add("Sub", period, offset)), axis=axis)


def _check_rank(g: Graph, value: str, rank: int) -> str:
    """Return a tensor; fail the run unless its rank is `rank`."""
    shape = g.add("Shape", value)
    actual = g.add("Shape", shape)
    holds = g.add("Equal", actual, g.int64([rank]))
    return g.add("Reshape", value, refused_unless(g, holds, shape, actual), allowzero=1)


def _may_crop_too_much(op: Pad) -> bool:
    """Return whether negative pads may exceed a size while the other end is padded."""
    pads = op.operand("pads")
    if pads is None or pads.value is None:
        return True
    sides = zip(op.pads[::2], op.pads[1::2], strict=True)
    shape = op.input.type.shape or (None,) * len(op.pads)
    return any(
        min(pair) < 0 < max(pair) and not isinstance(size, int)
        for pair, size in zip(sides, shape, strict=False)
    )


@converts(Pad, types=_PADDABLE, computed=["pads"], limit=_pad_limit)
def pad(g: Graph, op: Pad) -> str:
    if op.input.type.shape == ():
        return g[op.input]
    if _is_mirrored(op) and padded_once(op) is not None:
        value = g[op.input]
        if op.input.type.shape is None:
            value = _check_rank(g, value, len(op.pads) // 2)
        for axis, (before, after) in enumerate(zip(op.pads[::2], op.pads[1::2], strict=True)):
            value = _reflect(g, value, axis, before, after) if before or after else value
        return value
    sides = g.add("Reshape", g.indices(op.operand("pads")), g.int64([-1, 2]))
    pads_by_end, flat = g.add("Transpose", sides, perm=[1, 0]), g.int64([-1])
    if _may_crop_too_much(op):
        # Quirk cropped-beyond-end.
        cropped = g.add(
            "ReduceSum", g.add("Min", pads_by_end, g.int64([0])), g.int64([0]), keepdims=0
        )
        remaining = g.add("ReduceMin", g.add("Add", g.add("Shape", g[op.input]), cropped))
        holds = g.add("GreaterOrEqual", remaining, g.int64([0]))
        pads = refused_unless(g, holds, pads_by_end, flat)
    else:
        pads = g.add("Reshape", pads_by_end, flat)
    value = g.as_scalar(op.value) if op.value else ""
    return g.add("Pad", g[op.input], pads, value, mode=_MODES.get(op.mode, "constant"))
