"""Names and codes of resizing in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest

faces(
    ResizeNearest,
    nnadapter=NNAdapter(68, operands=("input", "shape", "scales", "align_corners")),
    hdi=(NodeType.RESIZE,),
    onnx=("Resize", "Upsample"),
)

faces(
    ResizeLinear,
    nnadapter=NNAdapter(69, operands=("input", "shape", "scales", "align_corners", "align_mode")),
    nnrt=(
        NNRt(
            43,
            "RESIZE_BILINEAR",
            parameters={
                "NEW_HEIGHT": "shape",
                "NEW_WIDTH": "shape",
                "PRESERVE_ASPECT_RATIO": "",
                "COORDINATE_TRANSFORM_MODE": "align_mode",
                "EXCLUDE_OUTSIDE": "exclude_outside",
            },
            translation="input and output are NHWC; shape is NEW_HEIGHT and NEW_WIDTH; "
            "COORDINATE_TRANSFORM_MODE 0 is ASYMMETRIC, 1 align_corners, 2 HALF_PIXEL; "
            "PRESERVE_ASPECT_RATIO must be false",
        ),
    ),
    hdi=(NodeType.RESIZE,),
    onnx=("Resize", "Upsample"),
)

faces(
    ResizeCubic,
    onnx=("Resize",),
)
