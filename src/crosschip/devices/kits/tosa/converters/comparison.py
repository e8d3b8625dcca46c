"""Comparisons."""

from __future__ import annotations

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import Convert, converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.ops.standard import comparison


def _ordered(op: Op, *, swapped: bool = False) -> Convert:
    """Return a converter to a comparison of numbers; booleans compare as 0 and 1."""

    def convert(g: Graph, operation: comparison.Comparison) -> Value:
        one, other = g[operation.input0], g[operation.input1]
        if one.dtype is DType.BOOL:
            one, other = g.cast(one, DType.INT32), g.cast(other, DType.INT32)
        return g.binary(op, *((other, one) if swapped else (one, other)), DType.BOOL)

    return convert


converts(comparison.Greater)(_ordered(Op.GREATER))
converts(comparison.GreaterEqual)(_ordered(Op.GREATER_EQUAL))
converts(comparison.Less)(_ordered(Op.GREATER, swapped=True))
converts(comparison.LessEqual)(_ordered(Op.GREATER_EQUAL, swapped=True))


@converts(comparison.Equal)
def equal(g: Graph, op: comparison.Equal) -> Value:
    return g.equal(g[op.input0], g[op.input1])


@converts(comparison.NotEqual)
def not_equal(g: Graph, op: comparison.NotEqual) -> Value:
    return g.logical_not(g.equal(g[op.input0], g[op.input1]))
