"""Choice among boxes that overlap."""

from __future__ import annotations

import numpy as np

from crosschip.devices.onnxruntime.converters.table import INDEXED, converts
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.hal import Refusal
from crosschip.ops.standard.suppression import NonMaxSuppressionIndices

_LIMITS = ["max_output_boxes_per_class", "iou_threshold", "score_threshold"]


def _part(op: NonMaxSuppressionIndices) -> Refusal | None:
    threshold = op.operand("iou_threshold")
    above = threshold is not None and threshold.value is not None and op.iou_threshold > 1
    return Refusal("iou_threshold", f"{op.iou_threshold:g} is above 1") if above else None


@converts(NonMaxSuppressionIndices, types=INDEXED, computed=_LIMITS, limit=_part)
def non_max_suppression_indices(g: Graph, op: NonMaxSuppressionIndices) -> str:
    limits = [_number(g, op, slot) for slot in _LIMITS]
    center = int(op.center_point_box)
    return g.add("NonMaxSuppression", g[op.boxes], g[op.scores], *limits, center_point_box=center)


def _number(g: Graph, op: NonMaxSuppressionIndices, slot: str) -> str:
    dtype, operand = np.int64 if slot == _LIMITS[0] else np.float32, op.operand(slot)
    if operand is None or operand.value is not None:
        return g.constant(np.full(1, getattr(op, slot), dtype))
    return g.add("Reshape", g.cast(g[operand], dtype), g.int64([1]))
