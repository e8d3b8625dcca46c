"""Names and codes of slicing in other systems."""

from __future__ import annotations

from crosschip.ir import ElementType
from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.definition.translation import Written
from crosschip.ops.standard.slicing import Crop, Slice, StridedSlice

_PLACES = (
    # No axis is as long as the places that stand for its end.
    Written("starts", ElementType.INT32),
    Written("ends", ElementType.INT32),
)

faces(
    Slice,
    nnadapter=NNAdapter(76, ("input", "axes", *_PLACES, "steps")),
    nnrt=(
        NNRt(
            *(29, "SLICE", ("input", "starts", "ends")),
            parameters={"AXES": "axes"},
            translation="The third input is a size; `ends` is `starts` plus that.",
        ),
    ),
    hdi=(NodeType.SLICE_FUSION,),
    onnx=("Slice",),
)

faces(
    StridedSlice,
    nnrt=(
        NNRt(
            *(37, "STRIDED_SLICE", ("input", "begin", "end", "strides")),
            parameters={
                "BEGIN_MASK": "begin_mask",
                "END_MASK": "end_mask",
                "ELLIPSIS_MASK": "ellipsis_mask",
                "NEW_AXIS_MASK": "new_axis_mask",
                "SHRINK_AXIS_MASK": "shrink_axis_mask",
            },
        ),
    ),
    hdi=(NodeType.STRIDED_SLICE,),
)

faces(
    Crop,
    nnrt=(
        NNRt(
            *(91, "CROP", ("input", "shape")),
            parameters={"AXIS": "axis", "OFFSET": "offset"},
        ),
    ),
)
