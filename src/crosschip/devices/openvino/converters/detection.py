"""Operators of object detectors, and sampling at any place."""

from __future__ import annotations

import numpy as np
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.limits import BORDERS
from crosschip.devices.openvino.converters.indexing import out_of_range
from crosschip.devices.openvino.converters.table import converts
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

_FLOAT32 = {ElementType.FLOAT32}
_INDEXED = _FLOAT32 | {ElementType.INT32, ElementType.INT64}


@converts(GridSample, types=_FLOAT32)
def grid_sample(g: Graph, op: GridSample) -> Node:
    mode, border = op.mode.name.lower(), BORDERS[op.pad_mode]
    attributes = {"mode": mode, "padding_mode": border, "align_corners": op.align_corners}
    return ops.grid_sample(g[op.input], g[op.grid], attributes)


def _fours(slot: str, boxes: Operand) -> Refusal | None:
    known = boxes.type.shape is not None and boxes.type.shape[-1] == 4
    return None if known else Refusal(slot, "the size of its last axis must be known", Rule.SHAPE)


def _averaging(op: RoiAlign) -> Refusal | None:
    if op.mode is not RoiMode.AVERAGE:
        return Refusal("mode", f"{op.mode.name} is of other products")
    if op.spatial_scale == 0:
        return Refusal("spatial_scale", "is 0")
    known = out_of_range(op.batch_indices, op.input, [0], slot="batch_indices", least=0)
    return known or _fours("rois", op.rois)


@converts(RoiAlign, types=_INDEXED, limit=_averaging)
def roi_align(g: Graph, op: RoiAlign) -> Node:
    images = g.within(op, op.batch_indices, op.input, [0], least=0)
    rois, nothing = g[op.rois], None
    if op.aligned and op.sampling_ratio <= 0:
        # Of no samples, OpenVINO makes NaN.
        corner, end = ops.split(rois, g.scalar(1), 2).outputs()
        nothing = ops.reduce_logical_or(ops.less_equal(end, corner), g.int64([1]), False)
    cells = ops.roi_align(
        *(g[op.input], rois, ops.convert(images, "i32")),
        *(op.output_height, op.output_width, max(0, op.sampling_ratio), op.spatial_scale),
        mode="avg",
        aligned_mode="half_pixel_for_nn" if op.aligned else "asymmetric",
    )
    if nothing is None:
        return cells
    return ops.select(ops.unsqueeze(nothing, g.int64([1, 2, 3])), g.number(0, op.input), cells)


def _above(threshold: float) -> float:
    """The least number above it: OpenVINO takes what is equal to a threshold for greater."""
    return float(np.nextafter(np.float32(threshold), np.float32(np.inf)))


def _known(boxes: Operand, scores: Operand) -> Refusal | None:
    """OpenVINO fails to compute what it knows as it compiles."""
    all_known = boxes.value is not None and scores.value is not None
    return Refusal("scores", "is constant, and so are the boxes") if all_known else None


def _overlapping(op: NonMaxSuppressionIndices) -> Refusal | None:
    if not 0 < op.iou_threshold < 1:
        return Refusal("iou_threshold", "must be between 0 and 1, where boxes are kept or dropped")
    return _known(op.boxes, op.scores) or _fours("boxes", op.boxes)


@converts(NonMaxSuppressionIndices, types=_INDEXED, limit=_overlapping)
def non_max_suppression_indices(g: Graph, op: NonMaxSuppressionIndices) -> Output:
    return ops.non_max_suppression(
        *(g[op.boxes], g[op.scores], g.scalar(op.max_output_boxes_per_class)),
        *(
            g.constant(np.array(threshold, np.float32))
            for threshold in (op.iou_threshold, op.score_threshold)
        ),
        box_encoding="center" if op.center_point_box else "corner",
        sort_result_descending=False,
    ).output(0)


def _of_images(op: NonMaxSuppression) -> Refusal | None:
    if op.rois_num:
        return Refusal("rois_num", "rows are counted otherwise")
    if not op.normalized:
        return Refusal("normalized", "boxes that only touch overlap otherwise")
    if not 0 < op.nms_eta <= 1:
        return Refusal("nms_eta", f"{op.nms_eta:g} is not above 0 and at most 1")
    for slot, number in (("nms_top_k", op.nms_top_k), ("keep_top_k", op.keep_top_k)):
        if number == 0:
            return Refusal(slot, "0 would be no limit")
    return _known(op.bboxes, op.scores) or _fours("bboxes", op.bboxes)


@converts(NonMaxSuppression, types=_INDEXED, limit=_of_images)
def non_max_suppression(g: Graph, op: NonMaxSuppression) -> list[Output]:
    found = ops.multiclass_nms(
        *(g[op.bboxes], g[op.scores]),
        sort_result_type="classid",
        sort_result_across_batch=False,
        output_type="i32",
        iou_threshold=_above(op.nms_threshold),
        score_threshold=_above(op.score_threshold),
        nms_top_k=max(-1, op.nms_top_k),
        keep_top_k=max(-1, op.keep_top_k),
        background_class=op.background_label,
        nms_eta=op.nms_eta,
        normalized=op.normalized,
    )
    return [found.output(index) for index in (0, 2, 1)][: len(op.outputs)]
