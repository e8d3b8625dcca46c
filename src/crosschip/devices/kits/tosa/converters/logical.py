"""Operators on booleans and bits, and selection."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import INTEGERS, binary, converts, unary
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import Op
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.standard import logical

converts(logical.And)(binary(Op.LOGICAL_AND))
converts(logical.Or)(binary(Op.LOGICAL_OR))
converts(logical.Xor)(binary(Op.LOGICAL_XOR))
converts(logical.Not)(unary(Op.LOGICAL_NOT))
converts(logical.BitwiseAnd, types=INTEGERS)(binary(Op.BITWISE_AND))
converts(logical.BitwiseOr, types=INTEGERS)(binary(Op.BITWISE_OR))
converts(logical.BitwiseXor, types=INTEGERS)(binary(Op.BITWISE_XOR))
converts(logical.BitwiseNot, types=INTEGERS)(unary(Op.BITWISE_NOT))


@converts(logical.Where)
def where(g: Graph, op: logical.Where) -> Value:
    return g.select(g[op.condition], g[op.input0], g[op.input1])


def _in_32_bits(op: logical.BitShift) -> Refusal | None:
    if op.input0.type.element_type is ElementType.INT64:
        return Refusal("input0", "TOSA shifts at most 32 bits, not int64", Rule.ELEMENT_TYPE)
    return None


@converts(logical.BitShift, types=INTEGERS, limit=_in_32_bits)
def bit_shift(g: Graph, op: logical.BitShift) -> Value:
    value, count = g[op.input0], g[op.input1]
    zero, most = g.number(0, count), g.number(31, count)
    outside = g.binary(Op.LOGICAL_OR, g.greater(zero, count), g.greater(count, g.number(31, count)))
    if op.direction is logical.ShiftDirection.LEFT:
        shifted = g.binary(Op.LOGICAL_LEFT_SHIFT, value, g.select(outside, zero, count))
        return g.select(outside, g.number(0, shifted), shifted)
    value, count = g.aligned(value, g.select(outside, most, count))
    shape = np.broadcast_shapes(value.shape, count.shape)
    return g.add(Op.ARITHMETIC_RIGHT_SHIFT, (value, count), value.dtype, shape, round=False)
