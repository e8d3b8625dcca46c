"""Names and codes of joining and splitting in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack

faces(
    Concat,
    nnadapter=NNAdapter(13),
    nnrt=(NNRt(7, "CONCAT", ("parts",), {"AXIS": "axis"}),),
    hdi=(NodeType.CONCAT,),
    onnx=("Concat",),
)

faces(
    Stack,
    nnadapter=NNAdapter(82),
    nnrt=(NNRt(36, "STACK", ("parts",), {"AXIS": "axis"}),),
    hdi=(NodeType.STACK,),
)

faces(
    Split,
    nnadapter=NNAdapter(79),
    nnrt=(
        NNRt(
            *(32, "SPLIT"),
            parameters={"AXIS": "axis", "OUTPUT_NUM": "", "SIZE_SPLITS": "split"},
            translation="Without SIZE_SPLITS, OUTPUT_NUM pieces of equal size.",
        ),
    ),
    hdi=(NodeType.SPLIT,),
    onnx=("Split",),
)

faces(
    Unstack,
    nnadapter=NNAdapter(91),
    nnrt=(NNRt(57, "UNSTACK", parameters={"AXIS": "axis"}),),
)

faces(
    Meshgrid,
    nnadapter=NNAdapter(50),
)
