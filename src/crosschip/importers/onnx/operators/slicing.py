"""Slicing."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.standard.slicing import Slice


@imports("Slice")
def slice_(node: Node) -> Operand:
    """Import Slice; ranges are attributes before opset 10."""
    if node.opset < 10:
        axes = node.optional_integers("axes")
        starts, ends = node.integers("starts"), node.integers("ends")
        return node.add(Slice, node[0], axes, starts, ends)
    return node.add(
        Slice,
        node[0],
        starts=node[1],
        ends=node[2],
        axes=node.optional(3),
        steps=node.optional(4),
    )
