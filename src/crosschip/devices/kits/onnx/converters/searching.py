"""Search for elements: extremes, the greatest, those that are not 0 or not alike."""

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
"""The outputs of a search among the elements of a value."""

_SUMMED = {ElementType.FLOAT32, ElementType.FLOAT64}


def _searched(
    g: Graph, op: Operator, operand: Operand, search: Search, greatest: bool
) -> list[str]:
    """A search among the elements of an operand, where NaN is the greatest, or the least.

    What orders them like that takes longer to make than to look for a NaN, which a sum shows.
    """

    def among_ordered(graph: Graph) -> list[str]:
        graph.stand_for(operand, g[operand])
        return search(graph, ordered(graph, operand, greatest=greatest))

    if not g.branches or operand.type.element_type not in _SUMMED:
        return among_ordered(g)
    value = g[operand]
    may_have_nan = g.add("IsNaN", g.add("ReduceSum", value, keepdims=0))
    return g.branch(op, may_have_nan, among_ordered, lambda graph: search(graph, value))


def _in_type(g: Graph, places: str, element_type: ElementType) -> str:
    """Places that a search found, in a type.

    In graphs of nodes, ONNX Runtime keeps what makes an output though it changes nothing.
    """
    return places if element_type is ElementType.INT64 else g.cast(places, element_type.dtype)


@converts(ArgMax, ArgMin, types=_COMPARED, nonempty=True)
def arg_extreme(g: Graph, op: ArgExtreme) -> list[str]:
    node = "ArgMax" if isinstance(op, ArgMax) else "ArgMin"
    last, keep = int(op.select_last), int(op.keepdim)

    def search(g: Graph, key: str) -> list[str]:
        if op.input.type.static_shape is not None:
            indices = g.add(node, key, axis=op.axis, keepdims=keep, select_last_index=last)
            return [_in_type(g, indices, op.dtype)]
        # Of no elements, ONNX Runtime keeps the axis, whatever it is told.
        axis = g.int64([op.axis])
        indices = g.add(node, key, axis=op.axis, keepdims=1, select_last_index=last)
        indices = g.add("Slice", indices, g.int64([0]), g.int64([1]), axis)
        indices = indices if keep else g.add("Squeeze", indices, axis)
        return [_in_type(g, indices, op.dtype)]

    return _searched(g, op, op.input, search, node == "ArgMax")


@converts(TopK, types=_COMPARED | {ElementType.INT16}, computed=["k"])
def top_k(g: Graph, op: TopK) -> list[str]:
    count, value = g.indices(op.operand("k")), g[op.input]

    def search(g: Graph, key: str) -> list[str]:
        values, places = g.add_all("TopK", 2, key, count, axis=op.axis, largest=int(op.largest))
        if key != value:
            values = g.add("GatherElements", value, places, axis=op.axis)
        return [values, _in_type(g, places, op.return_indices_dtype)]

    return _searched(g, op, op.input, search, greatest=True)


converts(NonZero, types=MOVABLE, limit=has_axes)(same("NonZero"))


def _entries(op: Unique) -> Refusal | None:
    # Of entries without elements, it ends the process.
    shape, axis = op.input.type.shape, op.axis
    if axis is None or (shape is not None and is_static((*shape[:axis], *shape[axis:][1:]))):
        return None
    return Refusal("axis", "the sizes of the other axes must be known", Rule.SHAPE)


@converts(
    Unique,
    types={ElementType.FLOAT32, ElementType.FLOAT64, ElementType.INT64},
    limit=_entries,
    nonempty=True,
)
def unique(g: Graph, op: Unique) -> list[str]:
    return g.add_all("Unique", 4, g[op.input], axis=op.axis, sorted=int(op.sorted))
