"""Search for elements: extremes, the greatest, those that are not 0 or not alike."""

from __future__ import annotations

from crosschip.hal import Refusal, Rule
from crosschip.hal.limits import has_axes
from crosschip.hal.onnx.converters.table import FLOAT_TYPES, converts, ordered
from crosschip.hal.onnx.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS, INDICES
from crosschip.ops.definition.windows import is_static
from crosschip.ops.standard.searching import ArgExtreme, ArgMax, ArgMin, NonZero, TopK, Unique

_COMPARED = FLOAT_TYPES | INDICES | {ElementType.INT8, ElementType.UINT8}


@converts(ArgMax, ArgMin, types=_COMPARED, nonempty=True)
def arg_extreme(g: Graph, op: ArgExtreme) -> str:
    node = "ArgMax" if isinstance(op, ArgMax) else "ArgMin"
    last, keep = int(op.select_last), int(op.keepdim)
    key = ordered(g, op.input, greatest=node == "ArgMax")
    if op.input.type.static_shape is not None:
        found = g.add(node, key, axis=op.axis, keepdims=keep, select_last_index=last)
        return g.cast(found, op.dtype.dtype)
    # Of no elements, ONNX Runtime keeps the axis, whatever it is told.
    axis = g.int64([op.axis])
    found = g.add(node, key, axis=op.axis, keepdims=1, select_last_index=last)
    found = g.add("Slice", found, g.int64([0]), g.int64([1]), axis)
    found = found if keep else g.add("Squeeze", found, axis)
    return g.cast(found, op.dtype.dtype)


@converts(TopK, types=_COMPARED | {ElementType.INT16}, computed=["k"])
def top_k(g: Graph, op: TopK) -> list[str]:
    count = g.indices(op.operand("k"))
    key = ordered(g, op.input, greatest=True)
    values, places = g.add_all("TopK", 2, key, count, axis=op.axis, largest=int(op.largest))
    if op.input.type.element_type in FLOAT_TYPES:
        values = g.add("GatherElements", g[op.input], places, axis=op.axis)
    return [values, g.cast(places, op.return_indices_dtype.dtype)]


_SINGLES = {ElementType.FLOAT32, *INDICES}


@converts(NonZero, types={ElementType.UINT8, *_SINGLES, *BOOLEANS}, limit=has_axes)
def non_zero(g: Graph, op: NonZero) -> str:
    return g.add("NonZero", g[op.input])


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
