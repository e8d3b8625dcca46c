"""Operators of the domain `ai.onnx.ml` that are arithmetic."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape


@imports("ai.onnx.ml.Binarizer")
def binarizer(node: Node) -> Operand:
    """1 where the input is greater than the threshold, else 0."""
    operand = node[0]
    threshold = np.array(node.real("threshold"), operand.type.element_type.dtype)
    return node.add(Cast, node.add(Less, threshold, operand), operand.type.element_type)


@imports("ai.onnx.ml.ArrayFeatureExtractor")
def array_feature_extractor(node: Node) -> Operand:
    """Columns of the last axis; a list counts as one row."""
    places = node.add(Reshape, node[1], (-1,))
    picked = node.add(Gather, node[0], places, -1)
    if node[0].type.shape is not None and len(node[0].type.shape) == 1:
        return node.add(Reshape, picked, (1, -1))
    return picked
