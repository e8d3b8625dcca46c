"""Non-maximum suppression."""

from __future__ import annotations

import numpy as np
from openvino import Output
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import INDEXED, check_boxes, converts
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal
from crosschip.ir import Operand
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices


def _above(threshold: float) -> float:
    """Return the next float32 above a threshold (quirk `overlap-at-threshold`)."""
    return float(np.nextafter(np.float32(threshold), np.float32(np.inf)))


def _check_constant(boxes: Operand, scores: Operand) -> Refusal | None:
    """Refuse constant boxes and scores (quirk `constant-boxes`)."""
    all_known = boxes.value is not None and scores.value is not None
    return Refusal("scores", "is constant, and so are the boxes") if all_known else None


def _check_overlap(op: NonMaxSuppressionIndices) -> Refusal | None:
    if not 0 < op.iou_threshold < 1:
        return Refusal("iou_threshold", "must be between 0 and 1, where boxes are kept or dropped")
    return _check_constant(op.boxes, op.scores) or check_boxes("boxes", op.boxes)


@converts(NonMaxSuppressionIndices, types=INDEXED, limit=_check_overlap)
def non_max_suppression_indices(g: Graph, op: NonMaxSuppressionIndices) -> Output:
    return ops.non_max_suppression(
        *(g[op.boxes], g[op.scores], g.scalar(max(0, op.max_output_boxes_per_class))),
        *(
            g.constant(np.array(threshold, np.float32))
            for threshold in (op.iou_threshold, op.score_threshold)
        ),
        box_encoding="center" if op.center_point_box else "corner",
        sort_result_descending=False,
    ).output(0)


def _comes_to_a_half(threshold: float, eta: float) -> bool:
    """Return whether a threshold that shrinks by `eta` while above 0.5 ever equals 0.5."""
    current = np.float32(threshold)
    while 0.5 < current < np.inf and eta < 1:
        current *= np.float32(eta)
    return eta < 1 and bool(current == 0.5)


def _check_images(op: NonMaxSuppression) -> Refusal | None:
    if op.rois_num:
        return Refusal("rois_num", "rows are counted otherwise")
    if not op.normalized:
        return Refusal("normalized", "boxes that only touch overlap otherwise")
    if not 0 < op.nms_eta <= 1:
        return Refusal("nms_eta", f"{op.nms_eta:g} is not above 0 and at most 1")
    if _comes_to_a_half(op.nms_threshold, op.nms_eta):
        return Refusal("nms_threshold", "comes to 0.5, which OpenVINO would make smaller still")
    for slot, number in (("nms_top_k", op.nms_top_k), ("keep_top_k", op.keep_top_k)):
        if number == 0:
            return Refusal(slot, "0 would be no limit")
    return _check_constant(op.bboxes, op.scores) or check_boxes("bboxes", op.bboxes)


@converts(NonMaxSuppression, types=INDEXED, limit=_check_images, nonempty=True)
def non_max_suppression(g: Graph, op: NonMaxSuppression) -> list[Value]:
    result = ops.multiclass_nms(
        *(g[op.bboxes], g[op.scores]),
        sort_result_type="classid",
        sort_result_across_batch=False,
        output_type="i32",
        iou_threshold=_above(op.nms_threshold),
        score_threshold=_above(op.score_threshold),
        nms_top_k=max(-1, op.nms_top_k),
        keep_top_k=max(-1, op.keep_top_k),
        background_class=max(-1, op.background_label),
        nms_eta=op.nms_eta,
        normalized=op.normalized,
    )
    boxes_found, indices, counts = result.outputs()
    if op.bboxes.type.static_shape is None or op.scores.type.static_shape is None:
        # Quirk `counts-of-nothing`.
        images, classes, boxes = (g.size(op.scores, axis) for axis in range(3))
        is_nothing = ops.equal(ops.multiply(classes, boxes), g.scalar(0))
        missing = ops.select(is_nothing, images, g.scalar(0))
        zeros = ops.broadcast(
            g.constant(np.array(0, np.int32)), ops.reshape(missing, g.int64([1]), False)
        )
        counts = ops.concat([counts, zeros], 0).output(0)
    return [boxes_found, counts, indices][: len(op.outputs)]
