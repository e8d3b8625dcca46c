"""Operators that extract a box from a tensor."""

from __future__ import annotations

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.ops.standard.slicing import Slice, python_slice


@converts(Slice)
def slice_(g: Graph, op: Slice) -> Value:
    value = g[op.input]
    axes = range(len(op.starts)) if op.axes is None else op.axes
    steps = op.steps or (1,) * len(op.starts)
    for axis, start, end, step in zip(axes, op.starts, op.ends, steps, strict=True):
        axis %= value.rank
        selected = range(value.shape[axis])[python_slice(start, end, step)]
        first, last = min(selected[0], selected[-1]), max(selected[0], selected[-1])
        value = g.part(value, axis, first, last + 1)
        if step < 0:
            value = g.reverse(value, axis)
        value = g.strided(value, axis, abs(step))
    return value
