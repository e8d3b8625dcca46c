"""Search for elements: extremes, the greatest, those that are not 0 or not alike."""

from __future__ import annotations

import numpy as np
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    MOVABLE,
    NUMBERS,
    converts,
    rank_of,
    sizes_only,
)
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES
from crosschip.ops.standard.searching import ArgExtreme, ArgMax, ArgMin, NonZero, TopK, Unique

_LARGEST = {
    ElementType.FLOAT16: 65504.0,
    ElementType.BFLOAT16: 3.3895313892515355e38,
    ElementType.FLOAT32: 3.4028234663852886e38,
}
"""The greatest finite numbers."""


def _narrow(op: ArgExtreme | TopK) -> Refusal | None:
    """The rule for an int64 input; indices may have any shape."""
    shape = op.input.type.shape
    if op.input.type.element_type is ElementType.INT64 and (shape is None or len(shape) > 1):
        return Refusal(
            "input", "int64 is computed in int32, which is for lists of sizes only", Rule.COMPUTED
        )
    return None


def _first(op: ArgExtreme) -> Refusal | None:
    return Refusal("select_last", "must be false") if op.select_last else _narrow(op)


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
    is_zero = count is not None and count.value is not None and not op.k
    return Refusal("k", "is 0") if is_zero else _narrow(op)


@converts(TopK, types=NUMBERS, computed=["k"], limit=_some)
def top_k(g: Graph, op: TopK) -> list[Output]:
    mode, axis = "max" if op.largest else "min", op.axis % rank_of(op.input)
    count = ops.reshape(g.indices(op.operand("k")), g.int64([]), False)
    index_type = TYPES[op.return_indices_dtype]
    key = _key(g, op.input, greatest=True)
    found = ops.topk(key, count, axis, mode, "value", index_type.to_string(), stable=True)
    if op.input.type.element_type not in FLOAT_TYPES:
        return [found.output(0), found.output(1)]
    values = ops.gather_elements(g[op.input], found.output(1), axis)
    return [values.output(0), found.output(1)]


def _key(g: Graph, operand: Operand, *, greatest: bool) -> Value:
    """What orders as an operand does, with NaN as an infinity and infinities one step nearer.

    OpenVINO puts a NaN anywhere, and with it other elements.
    """
    value = g[operand]
    if operand.type.element_type not in FLOAT_TYPES:
        return value
    largest = _LARGEST[operand.type.element_type]
    if greatest:
        bounded = ops.minimum(value, g.number(largest, operand))
        return ops.select(ops.is_nan(value), g.number(np.inf, operand), bounded)
    bounded = ops.maximum(value, g.number(-largest, operand))
    return ops.select(ops.is_nan(value), g.number(-np.inf, operand), bounded)


def _short(op: NonZero) -> Refusal | None:
    is_long = op.input.type.element_type is ElementType.INT64
    return Refusal("input", "int64 is computed in int32", Rule.COMPUTED) if is_long else None


@converts(NonZero, types=MOVABLE, limit=_short)
def non_zero(g: Graph, op: NonZero) -> Node:
    return ops.non_zero(g[op.input], "i64")


def _not_empty(op: Unique) -> Refusal | None:
    shape = op.input.type.static_shape
    if shape is None or 0 in shape:
        return Refusal("input", "its sizes must be known, and not 0", Rule.SHAPE)
    return sizes_only(op)


@converts(Unique, types=FLOAT_TYPES | INDICES, limit=_not_empty)
def unique(g: Graph, op: Unique) -> list[Output]:
    axis = None if op.axis is None else g.scalar(op.axis)
    found: list[Output] = ops.unique(g[op.input], axis, op.sorted, "i64", "i64").outputs()
    return found
