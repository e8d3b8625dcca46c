"""Activation functions."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Dimension, Operand, Shape
from crosschip.ops.activation import (
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Relu,
    Sigmoid,
    Softmax,
    Tanh,
)
from crosschip.ops.layout import Flatten, Reshape, ShapeOf
from crosschip.ops.operator import Operator

_PLAIN: dict[str, type[Operator]] = {
    "Relu": Relu,
    "Sigmoid": Sigmoid,
    "Tanh": Tanh,
    "HardSwish": HardSwish,
}


@imports(*_PLAIN)
def plain(node: Node) -> Operand:
    return node.add(_PLAIN[node.type], node[0])


@imports("LeakyRelu")
def leaky_relu(node: Node) -> Operand:
    return node.add(LeakyRelu, node[0], node.real("alpha", 0.01))


@imports("HardSigmoid")
def hard_sigmoid(node: Node) -> Operand:
    return node.add(HardSigmoid, node[0], node.real("alpha", 0.2), node.real("beta", 0.5))


@imports("Softmax")
def softmax(node: Node) -> Operand:
    """Before opset 13, all axes from `axis` on are taken as one."""
    if node.opset >= 13:
        return node.add(Softmax, node[0], node.integer("axis", -1))
    axis = node.integer("axis", 1)
    shape = node[0].type.shape
    if axis == -1 or (shape is not None and axis == len(shape) - 1):
        return node.add(Softmax, node[0], axis)
    merged = node.add(Softmax, node.add(Flatten, node[0], start_axis=axis), -1)
    sizes = None if shape is None else _reshape_sizes(shape, axis % max(1, len(shape)))
    return node.add(Reshape, merged, sizes or node.add(ShapeOf, node[0]))


def _reshape_sizes(shape: Shape, kept: int) -> tuple[int, ...] | None:
    """What reshapes to `shape` a tensor that has the same first sizes, if that can be said."""
    sizes = [-1 if isinstance(size, Dimension) else size for size in shape[kept:]]
    return (*(0,) * kept, *sizes) if sizes.count(-1) <= 1 and 0 not in sizes else None
