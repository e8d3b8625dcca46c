"""Slices."""

from __future__ import annotations

from crosschip.devices.kits.limits import backward_start, is_empty_list
from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.standard import slicing


@converts(slicing.Slice, types=MOVABLE, computed=["starts", "ends"], limit=backward_start)
def slice_(g: Graph, op: slicing.Slice) -> str:
    if is_empty_list(op.operand("starts")):
        return g[op.input]
    starts, ends, axes, steps = (
        g.indices(op.operand(slot)) for slot in ("starts", "ends", "axes", "steps")
    )
    return g.add("Slice", g[op.input], starts, ends, axes, steps)
