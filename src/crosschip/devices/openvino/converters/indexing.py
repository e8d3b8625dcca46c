"""Gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    MOVABLE,
    check_static_empty,
    check_uint32,
    converts,
)
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
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
    Scatter.ADD: "sum",
    Scatter.MUL: "prod",
    Scatter.MAX: "max",
    Scatter.MIN: "min",
}


def out_of_range(
    indices: Operand,
    data: Operand,
    axes: Sequence[int],
    *,
    slot: str = "indices",
    least: int | None = None,
) -> Refusal | None:
    """Refuse constant indices that are out of range (quirk `index-out-of-range`).

    Args:
        indices: one index per element; with several axes, one per axis along the last axis.
        data: the indexed operand.
        axes: the indexed axes of the data.
        slot: the slot of the indices.
        least: the least index; by default, the negative of the size.
    """
    sizes = [(data.type.shape or ())[axis] for axis in axes]
    for index, size in enumerate(sizes):
        if indices.value is None or not isinstance(size, int):
            continue
        values = indices.value if len(axes) == 1 else indices.value[..., index]
        first = -size if least is None else least
        if values.size and not (first <= values.min() and values.max() < size):
            return Refusal(slot, f"one is out of the range of {size} elements")
    return None


def _axes(op: GatherND | ScatterND) -> range:
    """Return the indexed axes of the input; their number is known."""
    count = (op.indices.type.shape or ())[-1]
    first = op.batch_dims if isinstance(op, GatherND) else 0
    return range(first, first + count) if isinstance(count, int) else range(0)


def _check_gather_nd(op: GatherND) -> Refusal | None:
    return _check_index_count(op) or check_uint32(op)


def _check_index_count(op: GatherND | ScatterND) -> Refusal | None:
    count = (op.indices.type.shape or ())[-1]
    if not isinstance(count, int) or not count:
        return Refusal("indices", "their last size must be known, and not 0", Rule.SHAPE)
    return out_of_range(op.indices, op.input, _axes(op))


@converts(GatherND, types=MOVABLE, limit=_check_gather_nd)
def gather_nd(g: Graph, op: GatherND) -> Node:
    indices = g.within(op, op.indices, op.input, _axes(op))
    return ops.gather_nd(g[op.input], indices, op.batch_dims)


def _check_gather_elements(op: GatherElements) -> Refusal | None:
    sizes, index_sizes = (list(o.type.shape or ()) for o in (op.input, op.indices))
    if sizes and index_sizes:
        index_sizes[op.axis] = sizes[op.axis]
    if not sizes or sizes != index_sizes:
        return Refusal(
            "indices", "its sizes must be known to be the input's on other axes", Rule.SHAPE
        )
    return out_of_range(op.indices, op.input, [op.axis]) or check_uint32(op)


@converts(GatherElements, types=MOVABLE, limit=_check_gather_elements)
def gather_elements(g: Graph, op: GatherElements) -> Node:
    indices = g.within(op, op.indices, op.input, [op.axis])
    return ops.gather_elements(g[op.input], indices, op.axis)


def _check_scatter(op: ScatterND | ScatterElements) -> Refusal | None:
    is_wide = op.input.type.element_type is ElementType.UINT32
    if is_wide and op.reduction in (Scatter.MAX, Scatter.MIN):
        return Refusal("reduction", "uint32 is compared as int32", Rule.ELEMENT_TYPE)
    return check_uint32(op)


def _check_scatter_nd(op: ScatterND) -> Refusal | None:
    return _check_index_count(op) or _check_scatter(op)


@converts(ScatterND, types=MOVABLE, limit=_check_scatter_nd)
def scatter_nd(g: Graph, op: ScatterND) -> Node:
    inputs = (g[op.input], g.within(op, op.indices, op.input, _axes(op)), g[op.updates])
    return ops.scatter_nd_update(*inputs, _REDUCTIONS[op.reduction])


def _check_scatter_elements(op: ScatterElements) -> Refusal | None:
    return out_of_range(op.indices, op.input, [op.axis]) or _check_scatter(op)


@converts(ScatterElements, types=MOVABLE, limit=_check_scatter_elements)
def scatter_elements(g: Graph, op: ScatterElements) -> Node:
    indices = g.within(op, op.indices, op.input, [op.axis])
    inputs = (g[op.input], indices, g[op.updates], g.scalar(op.axis))
    return ops.scatter_elements_update(*inputs, _REDUCTIONS[op.reduction])


def _check_gather(op: indexing.Gather) -> Refusal | None:
    refusal = check_static_empty(op) or out_of_range(op.indices, op.input, [op.axis])
    return refusal or check_uint32(op)


@converts(indexing.Gather, types=MOVABLE, limit=_check_gather)
def gather(g: Graph, op: indexing.Gather) -> Node:
    indices = g.within(op, op.indices, op.input, [op.axis])
    return ops.gather(g[op.input], indices, g.scalar(op.axis))
