"""Names and codes of quantization in other systems."""

from __future__ import annotations

from crosschip.ir import ElementType
from crosschip.ops.definition.faces import NNAdapter, faces
from crosschip.ops.definition.translation import TypeOfOutput, Written
from crosschip.ops.standard.quantization import Dequantize, Quantize

faces(
    Quantize,
    nnadapter=NNAdapter(
        60,
        ("input", "axis", "scale", Written("zero_point", ElementType.INT32)),
        given=(TypeOfOutput("dtype"),),
    ),
    onnx=("QuantizeLinear",),
)

faces(
    Dequantize,
    nnadapter=NNAdapter(19),
    onnx=("DequantizeLinear",),
)
