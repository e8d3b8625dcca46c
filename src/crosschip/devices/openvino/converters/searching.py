"""Search for elements: extremes, the greatest, those that are not 0 or not alike."""

from __future__ import annotations

import numpy as np
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    EXACT,
    FLOAT_TYPES,
    MOVABLE,
    NUMBERS,
    converts,
    near,
    rank_of,
)
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.hal.limits import has_axes
from crosschip.ir import Operand
from crosschip.ir.types import INDICES
from crosschip.ops.standard.searching import ArgExtreme, ArgMax, ArgMin, NonZero, TopK, Unique

_LARGEST = np.finfo(np.float32).max
"""The greatest finite numbers."""


def _first(op: ArgExtreme) -> Refusal | None:
    return Refusal("select_last", "must be false") if op.select_last else None


@converts(ArgMax, ArgMin, types=NUMBERS, limit=_first)
def arg_extreme(g: Graph, op: ArgExtreme) -> Value:
    mode, axis = "max" if isinstance(op, ArgMax) else "min", op.axis % rank_of(op.input)
    g.some(op, [axis])
    found = ops.topk(
        _key(g, op.input, greatest=mode == "max"),
        g.scalar(1),
        axis,
        mode,
        "value",
        TYPES[op.dtype].to_string(),
        stable=True,
    )
    return found.output(1) if op.keepdim else ops.squeeze(found.output(1), g.int64([axis]))


def _some(op: TopK) -> Refusal | None:
    count = op.operand("k")
    if count is not None and count.value is not None:
        return Refusal("k", "is 0") if not op.k else None
    if op.input.type.shape and op.input.type.shape[op.axis] == 0:
        return Refusal("k", "is computed, and there is nothing to take one of", Rule.COMPUTED)
    return None


@converts(TopK, types=NUMBERS, computed=["k"], limit=_some)
def top_k(g: Graph, op: TopK) -> list[Output]:
    mode, axis = "max" if op.largest else "min", op.axis % rank_of(op.input)
    asked, is_computed = _count(g, op, axis)
    # OpenVINO makes one at least.
    count = ops.maximum(asked, g.scalar(1)) if is_computed else asked
    count = ops.reshape(count, g.int64([]), False)
    index_type = TYPES[op.return_indices_dtype]
    key = _key(g, op.input, greatest=True)
    found = ops.topk(key, count, axis, mode, "value", index_type.to_string(), stable=True)
    values, places = found.outputs()
    if is_computed:
        start, step, along = g.int64([0]), g.int64([1]), g.int64([axis])
        values, places = (
            ops.slice(each, start, asked, step, along).output(0) for each in (values, places)
        )
    if op.input.type.element_type in FLOAT_TYPES:
        values = ops.gather_elements(g[op.input], places, axis).output(0)
    return [values, places]


def _count(g: Graph, op: TopK, axis: int) -> tuple[Node, bool]:
    """The number of elements asked for, as a list of one, and whether that shows only in a run.

    With a count that it cannot have, OpenVINO fails in later runs, too.
    """
    operand, size = op.operand("k"), (op.input.type.shape or ())[axis]
    is_computed = operand is not None and operand.value is None
    count = g.indices(operand)
    if isinstance(size, int) and not is_computed:
        return count, is_computed
    inside = ops.maximum(ops.minimum(count, g.size(op.input, axis)), g.scalar(0))
    g.require(op, "k: is negative, or more than there are", ops.equal(count, inside))
    return inside, is_computed


def _key(g: Graph, operand: Operand, *, greatest: bool) -> Value:
    """A value that orders as an operand does, where NaN is the greatest, or the least.

    OpenVINO puts a NaN anywhere, and with it other elements. So NaN becomes an infinity, and
    infinities the largest number, to make room for which all numbers are halved: only the very
    least lose a bit by that.
    """
    if operand.type.element_type not in FLOAT_TYPES:
        return g[operand]
    value = ops.convert(g[operand], "f32")
    end, largest = (np.inf, _LARGEST) if greatest else (-np.inf, -_LARGEST)
    halves = ops.multiply(value, g.constant(np.array(0.5, np.float32)))
    bounded = (ops.minimum if greatest else ops.maximum)(
        halves, g.constant(np.array(largest, np.float32))
    )
    return ops.select(ops.is_nan(value), g.constant(np.array(end, np.float32)), bounded)


@converts(NonZero, types=MOVABLE, limit=has_axes)
def non_zero(g: Graph, op: NonZero) -> Node:
    return ops.non_zero(g[op.input], "i64")


def _not_empty(op: Unique) -> Refusal | None:
    shape = op.input.type.static_shape
    if shape is None or 0 in shape:
        return Refusal("input", "its sizes must be known, and not 0", Rule.SHAPE)
    if op.axis is not None and len(shape) > 1:
        return Refusal("axis", "of entries that are alike, some stay", Rule.SHAPE)
    known = op.input.value
    if known is not None and np.isnan(known.astype(np.float64)).any():
        return Refusal("input", "has a NaN")
    return near(op)


# Unsorted integers are looked up as float32.
@converts(Unique, types=FLOAT_TYPES | INDICES, limit=_not_empty, bits=EXACT)
def unique(g: Graph, op: Unique) -> list[Output]:
    axis = None if op.axis is None else g.scalar(op.axis)
    found: list[Output] = ops.unique(g[op.input], axis, op.sorted, "i64", "i64").outputs()
    return found
