"""Names and codes of quantization in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, faces
from crosschip.ops.standard.quantization import Dequantize, Quantize

faces(
    Quantize,
    nnadapter=NNAdapter(
        *(60, ("input", "axis", "scale", "zero_point")),
        translation="`dtype` is the element type of the output operand.",
    ),
    onnx=("QuantizeLinear",),
)

faces(
    Dequantize,
    nnadapter=NNAdapter(19),
    onnx=("DequantizeLinear",),
)
