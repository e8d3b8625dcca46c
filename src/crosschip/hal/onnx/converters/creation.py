"""Tensors made from a description."""

from __future__ import annotations

from crosschip.hal.onnx.converters.table import (
    MOVABLE,
    converts,
)
from crosschip.hal.onnx.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard import creation
from crosschip.ops.standard.creation import Range


@converts(creation.Fill, types=MOVABLE, computed=["shape"])
def fill(g: Graph, op: creation.Fill) -> str:
    value = g.add("Reshape", g[op.value], g.int64([]))
    return g.add("Expand", value, g.indices(op.operand("shape")))


@converts(creation.ShapeOf, types=MOVABLE)
def shape_of(g: Graph, op: creation.ShapeOf) -> str:
    return g.cast(g.add("Shape", g[op.input]), op.dtype.dtype)


@converts(Range, types={ElementType.FLOAT32, ElementType.FLOAT64, *INDICES})
def range_(g: Graph, op: Range) -> str:
    bounds = (g.add("Reshape", g[o], g.int64([])) for o in (op.start, op.end, op.step))
    return g.add("Range", *bounds)
