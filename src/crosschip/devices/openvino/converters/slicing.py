"""Slices."""

from __future__ import annotations

from openvino import opset15 as ops

from crosschip.devices.kits.limits import backward_start
from crosschip.devices.openvino.converters.table import MOVABLE, check_uint32, converts
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal
from crosschip.ops.standard import slicing


def _check_slice(op: slicing.Slice) -> Refusal | None:
    return backward_start(op) or check_uint32(op)


@converts(slicing.Slice, types=MOVABLE, computed=["starts", "ends"], limit=_check_slice)
def slice_(g: Graph, op: slicing.Slice) -> Value:
    starts, ends = g.indices(op.operand("starts")), g.indices(op.operand("ends"))
    steps = op.operand("steps")
    steps = g.indices(steps) if steps else ops.broadcast(g.scalar(1), ops.shape_of(starts))
    axes = None if op.axes is None else g.int64(op.axes)
    return ops.slice(g[op.input], starts, ends, steps, axes)
