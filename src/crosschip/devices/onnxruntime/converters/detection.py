"""Operators of object detectors, and sampling at any place."""

from __future__ import annotations

import numpy as np

from crosschip.devices.limits import BORDERS
from crosschip.devices.onnxruntime.converters.table import converts
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.ir import ElementType
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode
from crosschip.ops.standard.suppression import NonMaxSuppressionIndices

_MODES = {Kernel.BILINEAR: "linear", Kernel.NEAREST: "nearest", Kernel.BICUBIC: "cubic"}
_FLOAT32 = {ElementType.FLOAT32}
_INDEXED = _FLOAT32 | {ElementType.INT32, ElementType.INT64}


@converts(GridSample, types=_FLOAT32)
def grid_sample(g: Graph, op: GridSample) -> str:
    return g.add(
        "GridSample",
        *(g[op.input], g[op.grid]),
        mode=_MODES[op.mode],
        padding_mode=BORDERS[op.pad_mode],
        align_corners=int(op.align_corners),
    )


@converts(RoiAlign, types=_INDEXED)
def roi_align(g: Graph, op: RoiAlign) -> str:
    rois = g[op.rois]
    if op.aligned and op.sampling_ratio <= 0:
        # Of less than no extent, ONNX Runtime counts the samples in vain.
        corner, end = g.add_all("Split", 2, rois, axis=1, num_outputs=2)
        rois = g.add("Concat", corner, g.add("Max", corner, end), axis=1)
    return g.add(
        "RoiAlign",
        *(g[op.input], rois, g.cast(g[op.batch_indices], np.int64)),
        coordinate_transformation_mode="half_pixel" if op.aligned else "output_half_pixel",
        mode="max" if op.mode is RoiMode.MAX else "avg",
        output_height=op.output_height,
        output_width=op.output_width,
        sampling_ratio=max(0, op.sampling_ratio),
        spatial_scale=op.spatial_scale,
    )


_LIMITS = ["max_output_boxes_per_class", "iou_threshold", "score_threshold"]


@converts(NonMaxSuppressionIndices, types=_INDEXED, computed=_LIMITS)
def non_max_suppression_indices(g: Graph, op: NonMaxSuppressionIndices) -> str:
    count, overlap, score = (_number(g, op, slot) for slot in _LIMITS)
    # Nothing overlaps by more than all, which is the most that ONNX Runtime takes.
    overlap = g.add("Min", overlap, g.constant(np.array(1, np.float32)))
    center = int(op.center_point_box)
    limits = (count, overlap, score)
    return g.add("NonMaxSuppression", g[op.boxes], g[op.scores], *limits, center_point_box=center)


def _number(g: Graph, op: NonMaxSuppressionIndices, slot: str) -> str:
    dtype, operand = np.int64 if slot == _LIMITS[0] else np.float32, op.operand(slot)
    if operand is None or operand.value is not None:
        return g.constant(np.full(1, getattr(op, slot), dtype))
    return g.add("Reshape", g.cast(g[operand], dtype), g.int64([1]))
