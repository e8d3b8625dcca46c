"""Names and codes of conversions of element types in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.conversion import Assign, BitCast, Cast

faces(
    Assign,
    nnadapter=NNAdapter(7),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Identity",),
)

faces(
    Cast,
    nnadapter=NNAdapter(10, ("input", "dtype")),
    nnrt=(
        NNRt(6, "CAST", ("input", "dtype")),
        NNRt(
            *(52, "QUANT_DTYPE_CAST"),
            parameters={"SRC_T": "", "DST_T": "dtype", "AXIS": ""},
            translation="To a quantized type it is QUANTIZE, along AXIS, by the quantization of "
            "the output; from one it is DEQUANTIZE; else CAST. SRC_T is the type of the input.",
        ),
    ),
    hdi=(NodeType.CAST, NodeType.QUANT_DTYPE_CAST),
    onnx=("Cast", "CastLike"),
)

faces(
    BitCast,
    onnx=("BitCast",),
)
