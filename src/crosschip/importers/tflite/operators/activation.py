"""Activation functions."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.options import GeluOptions, LeakyReluOptions
from crosschip.importers.facts import rank_of, static_shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.standard.activation import (
    Elu,
    Gelu,
    HardSwish,
    LeakyRelu,
    PRelu,
    Relu,
    Relu6,
    Sigmoid,
    Tanh,
)
from crosschip.ops.standard.arithmetic import Clip
from crosschip.ops.standard.layout import Reshape

_PLAIN: dict[str, type[Operator]] = {
    "ELU": Elu,
    "HARD_SWISH": HardSwish,
    "LOGISTIC": Sigmoid,
    "RELU": Relu,
    "RELU6": Relu6,
    "TANH": Tanh,
}

_CLIPS = {"RELU_0_TO_1": (0.0, 1.0), "RELU_N1_TO_1": (-1.0, 1.0)}


@imports(*_PLAIN)
def plain(node: Node) -> Operand:
    return node.add(_PLAIN[node.type], node[0])


@imports(*_CLIPS)
def clip(node: Node) -> Operand:
    low, high = _CLIPS[node.type]
    return node.add(Clip, node[0], low, high)


@imports("GELU")
def gelu(node: Node) -> Operand:
    return node.add(Gelu, node[0], approximate=bool(node.options(GeluOptions).approximate))


@imports("LEAKY_RELU")
def leaky_relu(node: Node) -> Operand:
    return node.add(LeakyRelu, node[0], alpha=node.options(LeakyReluOptions).alpha)


@imports("PRELU")
def prelu(node: Node) -> Operand:
    """Import a slope for each channel, on the last axis, in the layout of convolutions."""
    input, slope = node[0], node[1]
    rank, sizes = rank_of(input), static_shape_of(slope)
    if rank < 2 or any(size != 1 for size in sizes[:-1]):
        ones = (1,) * (rank - len(sizes))
        return node.add(PRelu, input, node.add(Reshape, slope, (*ones, *sizes)))
    channels = node.add(Reshape, slope, (-1,))
    activated = node.add(PRelu, node.channels_first(input), channels)
    return node.channels_last(node.fit(activated, node.output()))
