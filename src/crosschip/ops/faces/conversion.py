"""Names and codes of conversions of element types in other systems."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Operand
from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule, refusal
from crosschip.ops.faces.rules import Told, TypeNumber
from crosschip.ops.standard.conversion import Assign, BitCast, Cast


class OfPlain(Rule):
    """The input, where neither it nor the output is quantized."""

    slot = "input"
    text = "where the input or the output is quantized, this is DEQUANTIZE or QUANTIZE"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], use: Inward) -> bool:
        types = [operand.type] if operand is not None else []
        return not any(type_.quantization for type_ in (*types, *use.declared))

    def inward(self, operand: Operand | None, use: Inward) -> None:
        use.slots[self.slot] = operand

    def outward(self, use: Outward) -> Operand | None:
        operand = use.operation.operand(self.slot)
        if operand is not None and operand.type.quantization is not None:
            raise refusal(use, self.slot, "there is no number for what is quantized")
        return operand


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
            *(52, "QUANT_DTYPE_CAST", (OfPlain(),)),
            parameters={"SRC_T": TypeNumber(output=False), "DST_T": "dtype", "AXIS": Told()},
        ),
    ),
    hdi=(NodeType.CAST, NodeType.QUANT_DTYPE_CAST),
    onnx=("Cast", "CastLike"),
)

faces(
    BitCast,
    onnx=("BitCast",),
)
