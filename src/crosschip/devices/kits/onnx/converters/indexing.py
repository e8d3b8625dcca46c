"""Gather and scatter operators."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts, refused_unless, same
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ops.definition.windows import is_static
from crosschip.ops.standard import indexing

_REDUCTIONS = {
    indexing.Scatter.NONE: "none",
    indexing.Scatter.ADD: "add",
    indexing.Scatter.MUL: "mul",
    indexing.Scatter.MAX: "max",
    indexing.Scatter.MIN: "min",
}


@converts(indexing.GatherND, types=MOVABLE, nonempty=True)
def gather_nd(g: Graph, op: indexing.GatherND) -> str:
    indices = (
        _checked_indices(g, op) if _may_gather_nothing(op) else g.cast(g[op.indices], np.int64)
    )
    return g.add("GatherND", g[op.input], indices, batch_dims=op.batch_dims)


def _may_gather_nothing(op: indexing.GatherND) -> bool:
    """Return whether the gathered slices may be empty."""
    shape, index_shape = op.input.type.shape, op.indices.type.shape
    if shape is None or index_shape is None or not isinstance(index_shape[-1], int):
        return True
    return not is_static(shape[op.batch_dims + index_shape[-1] :])


def _checked_indices(g: Graph, op: indexing.GatherND) -> str:
    """Return the indices, checked: ONNX Runtime does not check them for empty slices."""
    # Quirk place-of-nothing.
    indices = g.cast(g[op.indices], np.int64)
    count = g.add("Shape", indices, start=-1)
    first = g.int64([op.batch_dims])
    shape = g.add("Shape", g[op.input])
    sizes = g.add("Slice", shape, first, g.add("Add", first, count))
    too_low = g.add("Less", indices, g.add("Neg", sizes))
    beyond = g.add("Or", too_low, g.add("GreaterOrEqual", indices, sizes))
    misses = g.add("ReduceSum", g.cast(beyond, np.float32), keepdims=0)
    holds = g.add("Equal", misses, g.constant(np.array(0, np.float32)))
    return refused_unless(g, holds, indices, g.add("Shape", indices))


converts(indexing.GatherElements, types=MOVABLE)(same("GatherElements", "axis"))
converts(indexing.Gather, types=MOVABLE)(same("Gather", "axis"))


def _scatter_limit(op: indexing.ScatterND | indexing.ScatterElements) -> Refusal | None:
    return Refusal("input", "must have axes", Rule.SHAPE) if op.input.type.shape == () else None


@converts(indexing.ScatterND, types=MOVABLE, limit=_scatter_limit)
def scatter_nd(g: Graph, op: indexing.ScatterND) -> str:
    return _scatter(g, op, g.cast(g[op.indices], np.int64))


@converts(indexing.ScatterElements, types=MOVABLE, limit=_scatter_limit)
def scatter_elements(g: Graph, op: indexing.ScatterElements) -> str:
    return _scatter(g, op, g[op.indices], axis=op.axis)


def _scatter(
    g: Graph, op: indexing.ScatterND | indexing.ScatterElements, indices: str, **axis: int
) -> str:
    node = "ScatterND" if isinstance(op, indexing.ScatterND) else "ScatterElements"
    reduction = _REDUCTIONS[op.reduction]
    return g.add(node, g[op.input], indices, g[op.updates], reduction=reduction, **axis)
