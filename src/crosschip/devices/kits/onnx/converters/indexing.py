"""Gather and scatter operators."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts, refused_unless, same
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ops.definition.windows import is_static
from crosschip.ops.standard import indexing
from crosschip.ops.standard.indexing import (
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
)

_REDUCTIONS = {
    Scatter.NONE: "none",
    Scatter.ADD: "add",
    Scatter.MUL: "mul",
    Scatter.MAX: "max",
    Scatter.MIN: "min",
}


@converts(GatherND, types=MOVABLE, nonempty=True)
def gather_nd(g: Graph, op: GatherND) -> str:
    indices = (
        _checked_indices(g, op) if _may_gather_nothing(op) else g.cast(g[op.indices], np.int64)
    )
    return g.add("GatherND", g[op.input], indices, batch_dims=op.batch_dims)


def _may_gather_nothing(op: GatherND) -> bool:
    """Return whether the gathered slices may be empty."""
    shape, index_shape = op.input.type.shape, op.indices.type.shape
    if shape is None or index_shape is None or not isinstance(index_shape[-1], int):
        return True
    return not is_static(shape[op.batch_dims + index_shape[-1] :])


def _checked_indices(g: Graph, op: GatherND) -> str:
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


converts(GatherElements, types=MOVABLE)(same("GatherElements", "axis"))
converts(indexing.Gather, types=MOVABLE)(same("Gather", "axis"))


def _scatter_limit(op: ScatterND | ScatterElements) -> Refusal | None:
    return Refusal("input", "must have axes", Rule.SHAPE) if op.input.type.shape == () else None


@converts(ScatterND, types=MOVABLE, limit=_scatter_limit)
def scatter_nd(g: Graph, op: ScatterND) -> str:
    return _scatter(g, op, g.cast(g[op.indices], np.int64))


@converts(ScatterElements, types=MOVABLE, limit=_scatter_limit)
def scatter_elements(g: Graph, op: ScatterElements) -> str:
    return _scatter(g, op, g[op.indices], axis=op.axis)


def _scatter(g: Graph, op: ScatterND | ScatterElements, indices: str, **axis: int) -> str:
    node = "ScatterND" if isinstance(op, ScatterND) else "ScatterElements"
    reduction = _REDUCTIONS[op.reduction]
    return g.add(node, g[op.input], indices, g[op.updates], reduction=reduction, **axis)
