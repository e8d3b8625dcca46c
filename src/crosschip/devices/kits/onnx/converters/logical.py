"""Comparisons, boolean and bitwise operators."""

from __future__ import annotations

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts, same
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS, INTEGERS
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import comparison, logical

_ORDERINGS: dict[type[comparison.Comparison], str] = {
    comparison.Less: "Less",
    comparison.LessEqual: "LessOrEqual",
    comparison.Greater: "Greater",
    comparison.GreaterEqual: "GreaterOrEqual",
}
_OF_BOOLEANS: dict[type[Operator], str] = {
    logical.Not: "Not",
    logical.And: "And",
    logical.Or: "Or",
    logical.Xor: "Xor",
}
_OF_BITS: dict[type[Operator], str] = {
    logical.BitwiseNot: "BitwiseNot",
    logical.BitwiseAnd: "BitwiseAnd",
    logical.BitwiseOr: "BitwiseOr",
    logical.BitwiseXor: "BitwiseXor",
}


def _ordering_limit(op: comparison.Comparison) -> Refusal | None:
    is_bool = op.input0.type.element_type is ElementType.BOOL
    return Refusal("input0", "bool has no order in ONNX", Rule.SHAPE) if is_bool else None


converts(comparison.Equal, types=MOVABLE)(same("Equal"))
for _ordering, _node in _ORDERINGS.items():
    converts(_ordering, types=MOVABLE, limit=_ordering_limit)(same(_node))
for _operator, _node in _OF_BOOLEANS.items():
    converts(_operator, types=BOOLEANS)(same(_node))
for _operator, _node in _OF_BITS.items():
    converts(_operator, types=INTEGERS)(same(_node))

converts(logical.Where, types=MOVABLE)(same("Where"))


def _bit_shift_limit(op: logical.BitShift) -> Refusal | None:
    bits = 8 * op.input0.type.element_type.dtype.itemsize
    if op.input1.value is None or (op.input1.value >= bits).any():
        return Refusal("input1", f"must be known to be less than {bits}", Rule.SHAPE)
    return None


@converts(
    logical.BitShift,
    types={ElementType.UINT8, ElementType.UINT32, ElementType.UINT64},
    limit=_bit_shift_limit,
)
def bit_shift(g: Graph, op: logical.BitShift) -> str:
    return g.add("BitShift", g[op.input0], g[op.input1], direction=op.direction.name)
