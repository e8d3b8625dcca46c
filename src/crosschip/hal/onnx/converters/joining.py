"""Joining and splitting."""

from __future__ import annotations

from crosschip.hal.onnx.converters.table import MOVABLE, converts
from crosschip.hal.onnx.graph import Graph
from crosschip.ops.standard import joining


@converts(joining.Concat, types=MOVABLE)
def concat(g: Graph, op: joining.Concat) -> str:
    return g.add("Concat", *(g[part] for part in op.parts), axis=op.axis)


@converts(joining.Split, types=MOVABLE, computed=["split"])
def split(g: Graph, op: joining.Split) -> list[str]:
    sizes = g.indices(op.operand("split"))
    return g.add_all("Split", len(op.outputs), g[op.input], sizes, axis=op.axis)
