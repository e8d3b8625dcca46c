"""Names and codes of conversions of element types in other systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import ElementType, Operand
from crosschip.mapping.common import HDI_CODES
from crosschip.mapping.layer_rules import activation_node
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, refusal, type_code
from crosschip.mapping.rules import Ignored, TypeCode, TypeOfOutput
from crosschip.ops.standard.conversion import Assign, BitCast, Cast


class UnquantizedInput(Rule):
    """The input, if neither it nor the output is quantized."""

    slot = "input"
    text = "where the input or the output is quantized, this is DEQUANTIZE or QUANTIZE"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], ctx: Import) -> bool:
        types = [operand.type] if operand is not None else []
        return not any(type_.quantization for type_ in (*types, *ctx.declared))

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.slots[self.slot] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        if operand is not None and operand.type.quantization is not None:
            raise refusal(ctx, self.slot, "has no code for quantized operands")
        return operand


class OutputTypeCode(Rule):
    """Exports the code of the output's element type; ignored on import."""

    slot = ""

    def export_operand(self, ctx: Export) -> Operand | None:
        return type_code(ctx, ctx.outputs[0].type, HDI_CODES[ElementType], np.int32)


map_operator(
    Assign,
    nnadapter=NNAdapter(7),
    hdi=(activation_node(15, "LINEAR"), activation_node(0, "NO_ACTIVATION")),
    onnx=("Identity",),
)

map_operator(
    Cast,
    nnadapter=NNAdapter(10, ("input", "dtype")),
    nnrt=(
        NNRt(6, "CAST", ("input", "dtype")),
        NNRt(
            52,
            "QUANT_DTYPE_CAST",
            (UnquantizedInput(),),
            parameters={"SRC_T": TypeCode(output=False), "DST_T": "dtype", "AXIS": Ignored()},
        ),
    ),
    hdi=(
        HDI(28, "CAST", ("input", OutputTypeCode()), other_rules=(TypeOfOutput("dtype"),)),
        HDI(
            113,
            "QUANT_DTYPE_CAST",
            (UnquantizedInput(),),
            attributes={"srcT": TypeCode(False, HDI_CODES[ElementType]), "dstT": "dtype"},
        ),
    ),
    onnx=("Cast", "CastLike"),
)

map_operator(BitCast, onnx=("BitCast",))
