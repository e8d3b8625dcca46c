"""Comparisons, boolean and bitwise operators."""

from __future__ import annotations

from collections.abc import Callable

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    EXACT,
    FLOAT_TYPES,
    INTEGER_TYPES,
    MOVABLE,
    accepts,
    check_uint32,
    converts,
    same,
)
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS, INDICES
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import comparison, logical

# Without uint32: quirk `uint32-as-int32`.
_ORDERED = FLOAT_TYPES | INTEGER_TYPES | BOOLEANS | {ElementType.INT8, ElementType.UINT8}
_BITS = MOVABLE - FLOAT_TYPES - BOOLEANS

_OF_BOOLEANS: dict[type[Operator], Callable[..., Node]] = {
    logical.Not: ops.logical_not,
    logical.And: ops.logical_and,
    logical.Or: ops.logical_or,
    logical.Xor: ops.logical_xor,
}
_OF_BITS: dict[type[Operator], Callable[..., Node]] = {
    logical.BitwiseNot: ops.bitwise_not,
    logical.BitwiseAnd: ops.bitwise_and,
    logical.BitwiseOr: ops.bitwise_or,
    logical.BitwiseXor: ops.bitwise_xor,
}


# Quirk `large-integers-compared`.
converts(comparison.Equal, types=MOVABLE, bits=EXACT)(same(ops.equal))
converts(comparison.NotEqual, types=MOVABLE, bits=EXACT)(same(ops.not_equal))
converts(comparison.Less, types=_ORDERED, bits=EXACT)(same(ops.less))
converts(comparison.LessEqual, types=_ORDERED, bits=EXACT)(same(ops.less_equal))
for _operator, _function in _OF_BOOLEANS.items():
    converts(_operator, types=BOOLEANS)(same(_function))
for _operator, _function in _OF_BITS.items():
    converts(_operator, types=_BITS)(same(_function))


accepts(comparison.Greater, comparison.GreaterEqual, types=_ORDERED, bits=EXACT)


@converts(logical.Where, types=MOVABLE, limit=check_uint32)
def where(g: Graph, op: logical.Where) -> Node:
    """Convert a choice; the negation prevents quirk `chosen-large-integers`."""
    condition, first, second = g[op.condition], g[op.input0], g[op.input1]
    if op.input0.type.element_type in INDICES:
        return ops.select(ops.logical_not(condition), second, first)
    return ops.select(condition, first, second)


def _check_shifts(op: logical.BitShift) -> Refusal | None:
    bits = 8 * op.input0.type.element_type.dtype.itemsize
    shifts = op.input1.value
    if shifts is None or (shifts < 0).any() or (shifts >= bits).any():
        return Refusal("input1", f"must be known to be from 0 to {bits - 1}", Rule.SHAPE)
    return None


@converts(logical.BitShift, types=_BITS - {ElementType.UINT32}, limit=_check_shifts)
def bit_shift(g: Graph, op: logical.BitShift) -> Node:
    is_left = op.direction is logical.ShiftDirection.LEFT
    function = ops.bitwise_left_shift if is_left else ops.bitwise_right_shift
    return function(g[op.input0], g[op.input1])
