"""Names and codes of comparisons in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.faces.common import PROMOTED
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)

COMPARED = f"{PROMOTED}; the output's quantization means nothing"

faces(
    Equal,
    nnadapter=NNAdapter(21),
    nnrt=(NNRt(70, "EQUAL", ("input0", "input1"), translation=COMPARED),),
    onnx=("Equal",),
)

faces(
    NotEqual,
    nnadapter=NNAdapter(54),
    nnrt=(NNRt(72, "NOT_EQUAL", ("input0", "input1"), translation=COMPARED),),
)

faces(
    Less,
    nnadapter=NNAdapter(41),
    nnrt=(NNRt(61, "LESS", ("input0", "input1"), translation=COMPARED),),
    onnx=("Less",),
)

faces(
    LessEqual,
    nnadapter=NNAdapter(42),
    nnrt=(NNRt(18, "LESS_EQUAL", ("input0", "input1"), translation=COMPARED),),
    hdi=(NodeType.LESS_EQUAL,),
    onnx=("LessOrEqual",),
)

faces(
    Greater,
    nnadapter=NNAdapter(32),
    nnrt=(NNRt(71, "GREATER", ("input0", "input1"), translation=COMPARED),),
    onnx=("Greater",),
)

faces(
    GreaterEqual,
    nnadapter=NNAdapter(33),
    nnrt=(NNRt(73, "GREATER_EQUAL", ("input0", "input1"), translation=COMPARED),),
    onnx=("GreaterOrEqual",),
)
