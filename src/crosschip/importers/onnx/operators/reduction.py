"""Reductions of axes to one value each."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand, UnsupportedError
from crosschip.ops.operator import Operator
from crosschip.ops.reduction import ReduceMax, ReduceMean, ReduceSum

_REDUCTIONS: dict[str, tuple[type[Operator], int]] = {
    "ReduceMean": (ReduceMean, 18),
    "ReduceSum": (ReduceSum, 13),
    "ReduceMax": (ReduceMax, 18),
}
"""The operator, and the opset in which its axes became an input."""


@imports(*_REDUCTIONS)
def reduction(node: Node) -> Operand:
    operator, since = _REDUCTIONS[node.type]
    keepdim = node.flag("keepdims", True)
    if node.opset < since:
        return node.add(operator, node[0], node.optional_integers("axes"), keepdim)
    axes = node.optional(1)
    if node.flag("noop_with_empty_axes", False):
        length = (0,) if axes is None else axes.type.static_shape
        if length is None:
            raise UnsupportedError("noop_with_empty_axes needs axes of known number")
        if length == (0,):
            return node[0]
    return node.add(operator, node[0], axes, keepdim)
