"""Elementwise comparisons."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.comparison import Equal, Greater, GreaterEqual, Less, LessEqual
from crosschip.ops.standard.conversion import Cast

_COMPARISONS: dict[str, type[Operator]] = {
    "Equal": Equal,
    "Greater": Greater,
    "GreaterOrEqual": GreaterEqual,
    "Less": Less,
    "LessOrEqual": LessEqual,
}


@imports(*_COMPARISONS)
def comparison(node: Node) -> Operand:
    return node.add(_COMPARISONS[node.type], node[0], node[1])


@imports("ai.onnx.ml.Binarizer")
def binarizer(node: Node) -> Operand:
    """Return 1 where the input is greater than the threshold, else 0."""
    operand = node[0]
    threshold = np.array(node.real("threshold"), operand.type.element_type.dtype)
    return node.add(Cast, node.add(Less, threshold, operand), operand.type.element_type)
