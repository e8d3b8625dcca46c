"""Operators that create a tensor from a description."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import converts, is_real, shape_of
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType
from crosschip.hal import Refusal, Rule
from crosschip.ops.standard.creation import Fill, Range, ShapeOf


@converts(Fill, computed=["shape"])
def fill(g: Graph, op: Fill) -> Value:
    shape = shape_of(op)
    return g.broadcast(g.reshape(g[op.value], (1,) * len(shape)), shape)


@converts(ShapeOf)
def shape_operator(g: Graph, op: ShapeOf) -> Value:
    return g.constant(np.array(shape_of(op.input), np.int32), DType.INT32)


def _same_count(op: Range) -> Refusal | None:
    if op.outputs[0].type.static_shape is None:
        return Refusal("end", "the number of elements must be known", Rule.SHAPE)
    return None


@converts(Range, limit=_same_count)
def range_(g: Graph, op: Range) -> Value:
    (count,) = shape_of(op)
    start, step = (g.reshape(g[operand], (1,)) for operand in (op.start, op.step))
    dtype = DType.FP32 if is_real(op.start) else DType.INT32
    numbers = g.cast(g.constant(np.arange(count, dtype=np.int32), DType.INT32), dtype)
    return g.sum(start, g.product(numbers, step))
