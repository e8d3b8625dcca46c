"""Global pooling."""

from __future__ import annotations

from crosschip.importers.facts import rank_of
from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
)
from crosschip.ops.standard.arithmetic import Pow
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean, ReduceSum
from crosschip.ops.standard.unary import Abs

_MEANS = {1: AdaptiveAveragePool1D, 2: AdaptiveAveragePool2D, 3: AdaptiveAveragePool3D}


@imports("GlobalAveragePool")
def global_average_pool(node: Node) -> Operand:
    shape = node[0].type.shape
    rank = 2 if shape is None else len(shape) - 2
    if rank in _MEANS:
        return node.add(_MEANS[rank], node[0], (1,) * rank)
    return node.add(ReduceMean, node[0], _image_axes(node), keepdim=True)


@imports("GlobalMaxPool")
def global_max_pool(node: Node) -> Operand:
    return node.add(ReduceMax, node[0], _image_axes(node), keepdim=True)


@imports("GlobalLpPool")
def global_lp_pool(node: Node) -> Operand:
    power = node.integer("p")
    powers = node.add(Pow, node.add(Abs, node[0]), float(power))
    return node.add(Pow, node.add(ReduceSum, powers, _image_axes(node), keepdim=True), 1 / power)


def _image_axes(node: Node) -> tuple[int, ...]:
    return tuple(range(2, rank_of(node[0])))
