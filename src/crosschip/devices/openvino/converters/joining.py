"""Concatenation and splitting."""

from __future__ import annotations

from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import MOVABLE, check_uint32, converts
from crosschip.devices.openvino.graph import Graph
from crosschip.ops.standard import joining


@converts(joining.Concat, types=MOVABLE, limit=check_uint32)
def concat(g: Graph, op: joining.Concat) -> Node:
    return ops.concat([g[part] for part in op.parts], op.axis)


@converts(joining.Split, types=MOVABLE, computed=["split"], limit=check_uint32)
def split(g: Graph, op: joining.Split) -> list[Output]:
    operand = op.operand("split")
    sizes = g.indices(operand)
    if operand is not None and operand.value is None:
        natural = ops.maximum(sizes, g.scalar(0))
        g.require(op, "split: a size is negative", ops.equal(sizes, natural))
        sizes = natural
    parts: list[Output] = ops.variadic_split(g[op.input], g.scalar(op.axis), sizes).outputs()
    return parts
