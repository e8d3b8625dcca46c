"""Sampling of images between pixels."""

from __future__ import annotations

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import PADDING_MODES
from crosschip.devices.openvino.converters.indexing import out_of_range
from crosschip.devices.openvino.converters.table import INDEXED, SINGLE, check_boxes, converts
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode


@converts(GridSample, types=SINGLE)
def grid_sample(g: Graph, op: GridSample) -> Node:
    mode, padding_mode = op.mode.name.lower(), PADDING_MODES[op.pad_mode]
    attributes = {"mode": mode, "padding_mode": padding_mode, "align_corners": op.align_corners}
    return ops.grid_sample(g[op.input], g[op.grid], attributes)


def _check_roi_align(op: RoiAlign) -> Refusal | None:
    if op.mode is not RoiMode.AVERAGE:
        return Refusal("mode", f"{op.mode.name} is of other products")
    if op.spatial_scale == 0:
        return Refusal("spatial_scale", "is 0")
    refusal = out_of_range(op.batch_indices, op.input, [0], slot="batch_indices", least=0)
    return refusal or check_boxes("rois", op.rois)


@converts(RoiAlign, types=INDEXED, limit=_check_roi_align)
def roi_align(g: Graph, op: RoiAlign) -> Node:
    images = g.within(op, op.batch_indices, op.input, [0], least=0)
    return ops.roi_align(
        *(g[op.input], g[op.rois], ops.convert(images, "i32")),
        *(op.output_height, op.output_width, max(0, op.sampling_ratio), op.spatial_scale),
        mode="avg",
        aligned_mode="half_pixel_for_nn" if op.aligned else "asymmetric",
    )
