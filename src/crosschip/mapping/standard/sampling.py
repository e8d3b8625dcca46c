"""Names and codes of sampling of images in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import NNAdapter, map_operator
from crosschip.ops.standard.sampling import GridSample, RoiAlign

map_operator(GridSample, nnadapter=NNAdapter(34), onnx=("GridSample",))

map_operator(
    RoiAlign,
    nnadapter=NNAdapter(
        70,
        (
            *("input", "rois", "batch_indices", "output_height", "output_width"),
            *("sampling_ratio", "spatial_scale", "aligned"),
        ),
    ),
    onnx=("RoiAlign",),
)
