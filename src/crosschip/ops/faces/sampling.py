"""Names and codes of sampling of images in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, faces
from crosschip.ops.standard.sampling import GridSample, RoiAlign

faces(
    GridSample,
    nnadapter=NNAdapter(34),
    onnx=("GridSample",),
)

faces(
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
