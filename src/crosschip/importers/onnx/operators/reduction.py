"""Reductions, and cumulative sums and products."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand, UnsupportedError
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.reduction import (
    CumProd,
    CumSum,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)

_REDUCTIONS: dict[str, tuple[type[Operator], int]] = {
    "ReduceL1": (ReduceL1, 18),
    "ReduceL2": (ReduceL2, 18),
    "ReduceLogSum": (ReduceLogSum, 18),
    "ReduceLogSumExp": (ReduceLogSumExp, 18),
    "ReduceMax": (ReduceMax, 18),
    "ReduceMean": (ReduceMean, 18),
    "ReduceMin": (ReduceMin, 18),
    "ReduceProd": (ReduceProd, 18),
    "ReduceSum": (ReduceSum, 13),
    "ReduceSumSquare": (ReduceSumSquare, 18),
}
"""The operator, and the opset since which its axes are an input."""

_OF_ONE_ITSELF = ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum
"""The reductions that are the identity on a single element."""

_ACCUMULATIONS: dict[str, type[Operator]] = {"CumSum": CumSum, "CumProd": CumProd}


@imports(*_REDUCTIONS)
def reduction(node: Node) -> Operand:
    """Import a reduction.

    With `noop_with_empty_axes` and no axes, each element is reduced alone: ReduceLogSum returns
    logarithms. Source: ONNX's description of the attribute, since opset 18.
    """
    operator, since = _REDUCTIONS[node.type]
    keepdim = node.flag("keepdims")
    if node.opset < since:
        return node.add(operator, node[0], node.optional_integers("axes"), keepdim)
    axes = node.optional(1)
    if node.flag("noop_with_empty_axes"):
        length = (0,) if axes is None else axes.type.static_shape
        if length is None:
            raise UnsupportedError("noop_with_empty_axes needs axes of known number")
        if length == (0,):
            if operator in _OF_ONE_ITSELF:
                return node[0]
            return node.add(operator, node.add(Unsqueeze, node[0], (0,)), (0,), False)
    return node.add(operator, node[0], axes, keepdim)


@imports(*_ACCUMULATIONS)
def accumulation(node: Node) -> Operand:
    return node.add(
        _ACCUMULATIONS[node.type],
        node[0],
        node[1],
        exclusive=node.flag("exclusive"),
        reverse=node.flag("reverse"),
    )
