"""Reading and writing elements at places that tensors give, and finding elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.limits import has_axes
from crosschip.devices.openvino.converters.table import FLOAT_TYPES, MOVABLE, converts, sizes_only
from crosschip.devices.openvino.graph import Graph
from crosschip.devices.openvino.requirements import INT32
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES
from crosschip.ops.standard.creation import OneHot
from crosschip.ops.standard.indexing import (
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
)
from crosschip.ops.standard.searching import NonZero, Unique

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
    """The rule for indices that are known: OpenVINO makes something up for what is not there.

    Args:
        indices: one index an element, or one for each axis along the last axis.
        data: what they point into.
        axes: the axes of the data that they count along.
        slot: the one that they fill.
        least: the least index, if it is not the negative of the size.
    """
    sizes = [(data.type.shape or ())[axis] for axis in axes]
    for index, size in enumerate(sizes):
        if indices.value is None or not isinstance(size, int):
            continue
        places = indices.value if len(axes) == 1 else indices.value[..., index]
        first = -size if least is None else least
        if places.size and not (first <= places.min() and places.max() < size):
            return Refusal(slot, f"one is out of the range of {size} elements")
    return None


def _axes(op: GatherND | ScatterND) -> range:
    """The axes of the input that the indices count along; their number is known."""
    count = (op.indices.type.shape or ())[-1]
    first = op.batch_dims if isinstance(op, GatherND) else 0
    return range(first, first + count) if isinstance(count, int) else range(0)


def _gathered(op: GatherND) -> Refusal | None:
    return _counted(op) or sizes_only(op, but="indices")


def _counted(op: GatherND | ScatterND) -> Refusal | None:
    count = (op.indices.type.shape or ())[-1]
    if not isinstance(count, int) or not count:
        return Refusal("indices", "their last size must be known, and not 0", Rule.SHAPE)
    return out_of_range(op.indices, op.input, _axes(op))


@converts(GatherND, types=MOVABLE, limit=_gathered)
def gather_nd(g: Graph, op: GatherND) -> Node:
    indices = g.within(op, op.indices, op.input, _axes(op))
    return ops.gather_nd(g[op.input], indices, op.batch_dims)


def _same_sizes(op: GatherElements) -> Refusal | None:
    own, places = (list(o.type.static_shape or ()) for o in (op.input, op.indices))
    if own and places:
        places[op.axis] = own[op.axis]
    if not own or own != places:
        return Refusal(
            "indices", "its sizes must be known to be the input's on other axes", Rule.SHAPE
        )
    return out_of_range(op.indices, op.input, [op.axis]) or sizes_only(op, but="indices")


@converts(GatherElements, types=MOVABLE, limit=_same_sizes)
def gather_elements(g: Graph, op: GatherElements) -> Node:
    indices = g.within(op, op.indices, op.input, [op.axis])
    return ops.gather_elements(g[op.input], indices, op.axis)


def _written(op: ScatterND | ScatterElements) -> Refusal | None:
    is_wide = op.input.type.element_type is ElementType.UINT32
    if is_wide and op.reduction in (Scatter.MAX, Scatter.MIN):
        return Refusal("reduction", "uint32 is compared as int32", Rule.ELEMENT_TYPE)
    return sizes_only(op, but="indices")


def _written_at(op: ScatterND) -> Refusal | None:
    return _counted(op) or _written(op)


@converts(ScatterND, types=MOVABLE, limit=_written_at)
def scatter_nd(g: Graph, op: ScatterND) -> Node:
    inputs = (g[op.input], g.within(op, op.indices, op.input, _axes(op)), g[op.updates])
    return ops.scatter_nd_update(*inputs, _REDUCTIONS[op.reduction])


def _written_along(op: ScatterElements) -> Refusal | None:
    return out_of_range(op.indices, op.input, [op.axis]) or _written(op)


@converts(ScatterElements, types=MOVABLE, limit=_written_along)
def scatter_elements(g: Graph, op: ScatterElements) -> Node:
    indices = g.within(op, op.indices, op.input, [op.axis])
    inputs = (g[op.input], indices, g[op.updates], g.scalar(op.axis))
    return ops.scatter_elements_update(*inputs, _REDUCTIONS[op.reduction])


def _short(op: NonZero) -> Refusal | None:
    is_long = op.input.type.element_type is ElementType.INT64
    if is_long:
        return Refusal("input", "int64 is computed in int32", Rule.COMPUTED)
    return has_axes(op)


@converts(NonZero, types=MOVABLE, limit=_short)
def non_zero(g: Graph, op: NonZero) -> Node:
    return ops.non_zero(g[op.input], "i64")


def _not_empty(op: Unique) -> Refusal | None:
    shape = op.input.type.static_shape
    if shape is None or 0 in shape:
        return Refusal("input", "its sizes must be known, and not 0", Rule.SHAPE)
    known = op.input.value
    if known is not None and np.isnan(known.astype(np.float64)).any():
        return Refusal("input", "has a NaN")
    return sizes_only(op)


@converts(Unique, types=FLOAT_TYPES | INDICES, limit=_not_empty)
def unique(g: Graph, op: Unique) -> list[Output]:
    axis = None if op.axis is None else g.scalar(op.axis)
    found: list[Output] = ops.unique(g[op.input], axis, op.sorted, "i64", "i64").outputs()
    return found


def _hot(op: OneHot) -> Refusal | None:
    if op.indices.type.element_type is ElementType.UINT32:
        return Refusal("indices", "uint32 is taken for int32", Rule.ELEMENT_TYPE)
    depth = op.operand("depth")
    if depth is not None and depth.value is not None and not 0 <= op.depth <= INT32[1]:
        return Refusal("depth", str(op.depth))
    if depth is not None and depth.value is None and op.indices.type.shape == ():
        return Refusal("indices", "is one number, and depth is computed")
    return sizes_only(op, but="indices")


@converts(OneHot, types=MOVABLE, computed=["depth"], limit=_hot)
def one_hot(g: Graph, op: OneHot) -> Node:
    indices, depth = ops.convert(g[op.indices], "i32"), op.operand("depth")
    size = ops.convert(ops.squeeze(g.indices(depth), g.int64([0])), "i32")
    zero = g.constant(np.array(0, np.int32))
    from_end = ops.select(ops.less(indices, zero), ops.add(indices, size), indices)
    values = (g.reshaped(value, []) for value in (op.on_value, op.off_value))
    return ops.one_hot(from_end, size, *values, op.axis)
