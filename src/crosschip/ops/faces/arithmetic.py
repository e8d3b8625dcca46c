"""Names and codes of arithmetic in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.faces.common import PROMOTED
from crosschip.ops.standard.arithmetic import (
    Add,
    BiasAdd,
    Clip,
    Div,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    Scale,
    SquaredDifference,
    Sub,
    Sum,
)

FUSED = f"the activation is an OH_NN_FuseType, where RELU6 is 2; {PROMOTED}"

faces(
    Add,
    nnadapter=NNAdapter(3),
    nnrt=(
        NNRt(1, "ADD", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode SUM (1) is this operator"),
    ),
    hdi=(NodeType.ADD_FUSION, NodeType.ELTWISE),
    onnx=("Add",),
)

faces(
    Sub,
    nnadapter=NNAdapter(83),
    nnrt=(NNRt(38, "SUB", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),),
    hdi=(NodeType.SUB_FUSION,),
    onnx=("Sub",),
)

faces(
    Mul,
    nnadapter=NNAdapter(52),
    nnrt=(
        NNRt(22, "MUL", ("input0", "input1"), {"ACTIVATION_TYPE": "fuse_code"}, FUSED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode PROD (0) is this operator"),
    ),
    hdi=(NodeType.MUL_FUSION, NodeType.ELTWISE),
    onnx=("Mul",),
)

faces(
    Div,
    nnadapter=NNAdapter(20),
    nnrt=(NNRt(11, "DIV", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),),
    hdi=(NodeType.DIV_FUSION,),
    onnx=("Div",),
)

faces(
    Pow,
    nnadapter=NNAdapter(57),
    nnrt=(
        NNRt(
            *(25, "POW", ("input0", "input1"), {"SCALE": "", "SHIFT": ""}),
            f"the base is scale * input + shift; {PROMOTED}",
        ),
    ),
    hdi=(NodeType.POW_FUSION,),
    onnx=("Pow",),
)

faces(
    Max,
    nnadapter=NNAdapter(48),
    nnrt=(
        NNRt(20, "MAXIMUM", ("input0", "input1"), translation=PROMOTED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode MAX (2) is this operator"),
    ),
    hdi=(NodeType.MAXIMUM, NodeType.ELTWISE),
    onnx=("Max",),
)

faces(
    Min,
    nnadapter=NNAdapter(51),
    nnrt=(NNRt(97, "MINIMUM", ("input0", "input1"), translation=PROMOTED),),
    onnx=("Min",),
)

faces(
    SquaredDifference,
    nnrt=(NNRt(34, "SQUARED_DIFFERENCE", ("input0", "input1"), translation=PROMOTED),),
    hdi=(NodeType.SQUARED_DIFFERENCE,),
)

faces(
    Sum,
    nnadapter=NNAdapter(84),
    onnx=("Sum",),
)

faces(
    Clip,
    nnadapter=NNAdapter(12, translation="bounds have the type of the input, quantized ones too"),
    nnrt=(NNRt(76, "CLIP", parameters={"MIN": "min", "MAX": "max"}),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Clip",),
)

faces(
    BiasAdd,
    nnrt=(NNRt(5, "BIAS_ADD", ("input", "bias")),),
    hdi=(NodeType.BIAS_ADD,),
)

faces(
    Scale,
    nnrt=(
        NNRt(
            *(26, "SCALE", ("input", "scale", "bias")),
            {"AXIS": "axis", "ACTIVATIONTYPE": "fuse_code"},
            FUSED,
        ),
    ),
    hdi=(NodeType.SCALE_FUSION,),
)

faces(
    FloorDiv,
    nnadapter=NNAdapter(28),
)

faces(
    Mod,
    nnrt=(NNRt(83, "MOD", ("input0", "input1"), translation=PROMOTED),),
    onnx=("Mod",),
)
