"""Concatenation and splitting."""

from __future__ import annotations

from functools import partial, reduce
from itertools import pairwise

import numpy as np

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts, rank_of, refused_unless
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard import joining


@converts(joining.Concat, types=MOVABLE)
def concat(g: Graph, op: joining.Concat) -> str:
    result = g.add("Concat", *(g[part] for part in op.parts), axis=op.axis)
    if not _may_differ(op):
        return result
    # ONNX Runtime does not check the other sizes of an empty part (quirk part-of-nothing).
    axis = _only_differing_axis(op)
    if axis is not None:
        sizes = [g.sizes(part, axis, axis + 1) for part in op.parts]
        fits = [g.add("Equal", size, other) for size, other in pairwise(sizes)]
        # In the target shape of Reshape, 0 keeps a size.
        same_shape = g.int64([0] * rank_of(op.parts[0]))
        return refused_unless(g, reduce(partial(g.add, "And"), fits), result, same_shape)
    shape = g.add("Shape", result)
    is_concat_axis = _is_concat_axis(g, op, shape)
    fits = [
        g.add("Or", is_concat_axis, g.add("Equal", g.add("Shape", g[part]), shape))
        for part in op.parts
    ]
    return refused_unless(g, reduce(partial(g.add, "And"), fits), result, shape)


def _may_differ(op: joining.Concat) -> bool:
    """Return whether parts may differ in sizes of other axes than the concatenation's."""
    shapes = [part.type.shape for part in op.parts]
    if len(shapes) == 1:
        return False
    first = shapes[0]
    if first is None or None in shapes:
        return True
    axis = normalize_axis(op.axis, len(first))
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes if shape is not None}
    return len(others) > 1


def _only_differing_axis(op: joining.Concat) -> int | None:
    """Return the only axis (counted from 0) on which parts may wrongly differ in size.

    Return `None` if there are several such axes, or ranks are unknown.
    """
    shapes = [part.type.shape for part in op.parts]
    first = shapes[0]
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return None
    concat_axis = normalize_axis(op.axis, len(first))
    sizes = zip(*(shape for shape in shapes if shape is not None), strict=True)
    differ = [
        axis
        for axis, axis_sizes in enumerate(sizes)
        if axis != concat_axis and len(set(axis_sizes)) > 1
    ]
    return differ[0] if len(differ) == 1 else None


def _is_concat_axis(g: Graph, op: joining.Concat, shape: str) -> str:
    """Return a boolean per axis: whether it is the concatenation's."""
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
