"""Names and codes of changes of shape and axis order in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze

faces(
    Reshape,
    nnadapter=NNAdapter(67),
    nnrt=(NNRt(45, "RESHAPE", ("input", "shape")),),
    hdi=(NodeType.RESHAPE,),
    onnx=("Reshape",),
)

faces(
    Transpose,
    nnadapter=NNAdapter(89),
    nnrt=(NNRt(41, "TRANSPOSE", ("input", "perm")),),
    hdi=(NodeType.TRANSPOSE,),
    onnx=("Transpose",),
)

faces(
    Squeeze,
    nnadapter=NNAdapter(81),
    nnrt=(NNRt(35, "SQUEEZE", parameters={"AXIS": "axes"}),),
    hdi=(NodeType.SQUEEZE,),
    onnx=("Squeeze",),
)

faces(
    Unsqueeze,
    nnadapter=NNAdapter(90),
    nnrt=(
        NNRt(13, "EXPAND_DIMS", ("input", "axes"), translation="The axis becomes a list of one."),
        NNRt(55, "UNSQUEEZE", parameters={"AXIS": "axes"}),
    ),
    hdi=(NodeType.EXPAND_DIMS, NodeType.UNSQUEEZE),
    onnx=("Unsqueeze",),
)

faces(
    Flatten,
    nnadapter=NNAdapter(26),
    nnrt=(
        NNRt(
            *(64, "FLATTEN"),
            parameters={"AXIS": ""},
            translation="Two of them make the two axes: from 0 to before AXIS, then from 1 to the "
            "last; with AXIS 0, the whole is flattened and given a first axis of size 1.",
        ),
    ),
    onnx=("Flatten",),
)

faces(
    Expand,
    nnadapter=NNAdapter(23),
    nnrt=(NNRt(69, "BROADCAST_TO", parameters={"SHAPE": "shape"}),),
    onnx=("Expand",),
)
