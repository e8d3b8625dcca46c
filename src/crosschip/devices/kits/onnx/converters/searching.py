"""Search operators: extremes, top k, non-zero and unique elements."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.devices.kits.limits import has_axes
from crosschip.devices.kits.onnx.converters.table import (
    FLOAT_TYPES,
    MOVABLE,
    converts,
    ordered,
    same,
)
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.windows import is_static
from crosschip.ops.standard.searching import ArgExtreme, ArgMax, ArgMin, NonZero, TopK, Unique

_COMPARED = FLOAT_TYPES | INDICES | {ElementType.INT8, ElementType.UINT8}


Search = Callable[[Graph, str], list[str]]
"""Adds a search among the elements of a value; returns the outputs."""

_SUMMED = {ElementType.FLOAT32, ElementType.FLOAT64}


def _search(g: Graph, op: Operator, operand: Operand, search: Search, greatest: bool) -> list[str]:
    """Add a search among an operand's elements in which NaN is the greatest, or the least.

    Ordering NaN is slower than checking for NaN by a sum, so an `If` chooses between both.
    """

    def search_ordered(graph: Graph) -> list[str]:
        graph.bind(operand, g[operand])
        return search(graph, ordered(graph, operand, greatest=greatest))

    if not g.branches or operand.type.element_type not in _SUMMED:
        return search_ordered(g)
    value = g[operand]
    may_have_nan = g.add("IsNaN", g.add("ReduceSum", value, keepdims=0))
    return g.branch(op, may_have_nan, search_ordered, lambda graph: search(graph, value))


def _cast_indices(g: Graph, indices: str, element_type: ElementType) -> str:
    """Return indices in an element type.

    Inside of `If` branches, ONNX Runtime would keep a Cast that changes nothing.
    """
    return indices if element_type is ElementType.INT64 else g.cast(indices, element_type.dtype)


@converts(ArgMax, ArgMin, types=_COMPARED, nonempty=True)
def arg_extreme(g: Graph, op: ArgExtreme) -> list[str]:
    node = "ArgMax" if isinstance(op, ArgMax) else "ArgMin"
    last, keep = int(op.select_last), int(op.keepdim)

    def search(g: Graph, key: str) -> list[str]:
        indices = g.add(node, key, axis=op.axis, keepdims=keep, select_last_index=last)
        return [_cast_indices(g, indices, op.dtype)]

    return _search(g, op, op.input, search, node == "ArgMax")


@converts(TopK, types=_COMPARED | {ElementType.INT16}, computed=["k"])
def top_k(g: Graph, op: TopK) -> list[str]:
    count, value = g.indices(op.operand("k")), g[op.input]

    def search(g: Graph, key: str) -> list[str]:
        values, indices = g.add_all("TopK", 2, key, count, axis=op.axis, largest=int(op.largest))
        if key != value:
            values = g.add("GatherElements", value, indices, axis=op.axis)
        return [values, _cast_indices(g, indices, op.return_indices_dtype)]

    return _search(g, op, op.input, search, greatest=True)


converts(NonZero, types=MOVABLE, limit=has_axes)(same("NonZero"))


def unique_limit(op: Unique) -> Refusal | None:
    # Quirk unique-slices-of-nothing.
    shape, axis = op.input.type.shape, op.axis
    if axis is None or (shape is not None and is_static((*shape[:axis], *shape[axis:][1:]))):
        return None
    return Refusal("axis", "the sizes of the other axes must be known", Rule.SHAPE)


@converts(
    Unique,
    types={ElementType.FLOAT32, ElementType.FLOAT64, ElementType.INT64},
    limit=unique_limit,
    nonempty=True,
)
def unique(g: Graph, op: Unique) -> list[str]:
    return g.add_all("Unique", 4, g[op.input], axis=op.axis, sorted=int(op.sorted))
