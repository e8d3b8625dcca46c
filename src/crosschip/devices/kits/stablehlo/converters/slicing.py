"""Slices."""

from __future__ import annotations

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard.slicing import Crop, Slice, StridedSlice, python_slice

converts(Crop, StridedSlice)(decomposed)


@converts(Slice)
def slice_(g: Graph, op: Slice) -> Value:
    data = g[op.input]
    axes = range(len(op.starts)) if op.axes is None else op.axes
    box = [slice(None)] * data.ndim
    steps = op.steps or (1,) * len(op.starts)
    for axis, start, end, step in zip(axes, op.starts, op.ends, steps, strict=True):
        box[axis] = python_slice(start, end, step)
    return data[tuple(box)]
