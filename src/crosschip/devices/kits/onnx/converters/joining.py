"""Joining and splitting."""

from __future__ import annotations

from functools import partial, reduce
from itertools import pairwise

import numpy as np

from crosschip.devices.kits.onnx.converters.table import (
    MOVABLE,
    converts,
    rank_of,
    refused_unless,
)
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard import joining


@converts(joining.Concat, types=MOVABLE)
def concat(g: Graph, op: joining.Concat) -> str:
    joined = g.add("Concat", *(g[part] for part in op.parts), axis=op.axis)
    if not _may_differ(op):
        return joined
    # ONNX Runtime passes over an empty part, whatever its other sizes are.
    one = _one_that_may_differ(op)
    if one is not None:
        sizes = [g.sizes(part, one, one + 1) for part in op.parts]
        fits = [g.add("Equal", size, other) for size, other in pairwise(sizes)]
        # In a shape to be given, 0 is the size that there is.
        same = g.int64([0] * rank_of(op.parts[0]))
        return refused_unless(g, reduce(partial(g.add, "And"), fits), joined, same)
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
    axis = normalize_axis(op.axis, len(first))
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes if shape is not None}
    return len(others) > 1


def _one_that_may_differ(op: joining.Concat) -> int | None:
    """The only axis, counted from the first, on which sizes of parts may differ that should not.

    `None` if there are several, or not all ranks are known.
    """
    shapes = [part.type.shape for part in op.parts]
    first = shapes[0]
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return None
    own = normalize_axis(op.axis, len(first))
    sizes = zip(*(shape for shape in shapes if shape is not None), strict=True)
    differ = [
        axis for axis, axis_sizes in enumerate(sizes) if axis != own and len(set(axis_sizes)) > 1
    ]
    return differ[0] if len(differ) == 1 else None


def _own_axis(g: Graph, op: joining.Concat, shape: str) -> str:
    """For each axis, whether it is the one that the parts run along."""
    rank = next((len(part.type.shape) for part in op.parts if part.type.shape is not None), None)
    if rank is not None:
        return g.constant(np.arange(rank) == normalize_axis(op.axis, rank))
    count = g.add("Size", shape)
    axes = g.add("Range", g.constant(np.array(0)), count, g.constant(np.array(1)))
    from_end = g.constant(np.array(op.axis))
    return g.add("Equal", axes, g.add("Add", from_end, count) if op.axis < 0 else from_end)


@converts(joining.Split, types=MOVABLE, computed=["split"])
def split(g: Graph, op: joining.Split) -> list[str]:
    sizes = g.indices(op.operand("split"))
    return g.add_all("Split", len(op.outputs), g[op.input], sizes, axis=op.axis)
