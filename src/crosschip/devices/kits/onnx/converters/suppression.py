"""Non-maximum suppression."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import INDEXED, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.standard.suppression import NonMaxSuppressionIndices

_LIMITS = ["max_output_boxes_per_class", "iou_threshold", "score_threshold"]


@converts(NonMaxSuppressionIndices, types=INDEXED, computed=_LIMITS)
def non_max_suppression_indices(g: Graph, op: NonMaxSuppressionIndices) -> str:
    count, overlap, score = (_number(g, op, slot) for slot in _LIMITS)
    # ONNX defines no thresholds above 1; they mean the same as 1.
    overlap = g.add("Min", overlap, g.constant(np.array(1, np.float32)))
    center = int(op.center_point_box)
    limits = (count, overlap, score)
    return g.add("NonMaxSuppression", g[op.boxes], g[op.scores], *limits, center_point_box=center)


def _number(g: Graph, op: NonMaxSuppressionIndices, slot: str) -> str:
    dtype, operand = np.int64 if slot == _LIMITS[0] else np.float32, op.operand(slot)
    if operand is None or operand.value is not None:
        return g.constant(np.full(1, getattr(op, slot), dtype))
    return g.add("Reshape", g.cast(g[operand], dtype), g.int64([1]))
