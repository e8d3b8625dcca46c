"""Conversion between element types."""

from __future__ import annotations

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import converts, is_real
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType
from crosschip.ir import ElementType
from crosschip.ops.standard.conversion import Assign, Cast


@converts(Assign)
def assign(g: Graph, op: Assign) -> Value:
    return g[op.input]


@converts(Cast)
def cast(g: Graph, op: Cast) -> Value:
    value = g[op.input]
    if op.dtype is ElementType.BOOL:
        return g.cast(value, DType.BOOL)
    if is_real(op.input) and op.outputs[0].type.element_type not in _REALS:
        return g.truncate(value)
    return g.widen(value) if value.dtype is not DType.BOOL else _of_boolean(g, op, value)


def _of_boolean(g: Graph, op: Cast, value: Value) -> Value:
    if op.dtype in _REALS:
        return g.cast(value, DType.FP32)
    return g.cast(value, DType.INT32)


_REALS = frozenset({ElementType.FLOAT32, ElementType.FLOAT16, ElementType.BFLOAT16})
