"""Sampling of images between pixels."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.limits import PADDING_MODES
from crosschip.devices.kits.onnx.converters.table import INDEXED, SINGLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode

_MODES = {Kernel.BILINEAR: "linear", Kernel.NEAREST: "nearest", Kernel.BICUBIC: "cubic"}


@converts(GridSample, types=SINGLE)
def grid_sample(g: Graph, op: GridSample) -> str:
    return g.add(
        "GridSample",
        *(g[op.input], g[op.grid]),
        mode=_MODES[op.mode],
        padding_mode=PADDING_MODES[op.pad_mode],
        align_corners=int(op.align_corners),
    )


@converts(RoiAlign, types=INDEXED)
def roi_align(g: Graph, op: RoiAlign) -> str:
    rois = g[op.rois]
    if op.aligned and op.sampling_ratio <= 0:
        # Quirk region-of-negative-extent.
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
