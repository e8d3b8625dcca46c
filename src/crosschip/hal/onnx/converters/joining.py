"""Joining and splitting."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from crosschip.hal.onnx.converters.table import (
    MOVABLE,
    converts,
    refused_unless,
)
from crosschip.hal.onnx.graph import Graph
from crosschip.ops.definition.shapes import axis_in
from crosschip.ops.standard import joining


@converts(joining.Concat, types=MOVABLE)
def concat(g: Graph, op: joining.Concat) -> str:
    joined = g.add("Concat", *(g[part] for part in op.parts), axis=op.axis)
    if not _may_differ(op):
        return joined
    # ONNX Runtime passes over an empty part, whatever its other sizes are.
    shape = g.add("Shape", joined)
    own_axis = _own_axis(g, op, shape)
    fits = [
        g.add("Or", own_axis, g.add("Equal", g.add("Shape", g[part]), shape)) for part in op.parts
    ]
    return refused_unless(g, reduce(partial(g.add, "And"), fits), joined, shape)


def _may_differ(op: joining.Concat) -> bool:
    """Tell whether parts may have different sizes on other axes than the one they run along."""
    shapes = [part.type.shape for part in op.parts]
    if len(shapes) == 1:
        return False
    first = shapes[0]
    if first is None or None in shapes:
        return True
    axis = axis_in(op.axis, len(first))
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes if shape is not None}
    return len(others) > 1


def _own_axis(g: Graph, op: joining.Concat, shape: str) -> str:
    """For each axis, whether it is the one that the parts run along."""
    rank = next((len(part.type.shape) for part in op.parts if part.type.shape is not None), None)
    if rank is not None:
        return g.constant(np.arange(rank) == axis_in(op.axis, rank))
    count = g.add("Size", shape)
    axes = g.add("Range", g.constant(np.array(0)), count, g.constant(np.array(1)))
    from_end = g.constant(np.array(op.axis))
    return g.add("Equal", axes, g.add("Add", from_end, count) if op.axis < 0 else from_end)


@converts(joining.Split, types=MOVABLE, computed=["split"])
def split(g: Graph, op: joining.Split) -> list[str]:
    sizes = g.indices(op.operand("split"))
    return g.add_all("Split", len(op.outputs), g[op.input], sizes, axis=op.axis)
