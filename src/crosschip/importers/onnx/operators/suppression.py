"""Non-maximum suppression of boxes."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.suppression import NonMaxSuppressionIndices


@imports("NonMaxSuppression")
def non_max_suppression(node: Node) -> Operand:
    count, overlap, score = (node.optional(index) for index in range(2, 5))
    return node.add(
        NonMaxSuppressionIndices,
        node[0],
        node[1],
        max_output_boxes_per_class=0 if count is None else node.add(Reshape, count, ()),
        iou_threshold=0.0 if overlap is None else node.add(Reshape, overlap, ()),
        score_threshold=-np.inf if score is None else node.add(Reshape, score, ()),
        center_point_box=node.flag("center_point_box"),
    )
