"""Normalization by given or computed statistics."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.ir import Array, Operand
from crosschip.ops.creation import Fill
from crosschip.ops.layout import ShapeOf
from crosschip.ops.normalization import BatchNormalization, LayerNormalization


@imports("BatchNormalization")
def batch_normalization(node: Node) -> Operand:
    """Before opset 14, a node is in training mode if it has more outputs than one."""
    node.ignore("momentum")
    only("spatial", node.integer("spatial", 1) if node.opset < 9 else 1, 1)
    if node.opset < 14:
        only("number of outputs", sum(map(bool, node.outputs)), 1)
    else:
        only("training_mode", node.integer("training_mode", 0), 0)
    return node.add(BatchNormalization, *(node[i] for i in range(5)), node.real("epsilon", 1e-5))


@imports("LayerNormalization")
def layer_normalization(node: Node) -> Operand:
    node.ignore("stash_type")
    scale = node[1]
    return node.add(
        LayerNormalization,
        node[0],
        scale,
        node.optional(2) or _zeros_like(node, scale),
        node.integer("axis", -1),
        node.real("epsilon", 1e-5),
    )


def _zeros_like(node: Node, operand: Operand) -> Operand | Array:
    dtype = operand.type.element_type.dtype
    if operand.value is not None:
        return np.zeros(operand.value.shape, dtype)
    return node.add(Fill, node.add(ShapeOf, operand), np.zeros(1, dtype))
