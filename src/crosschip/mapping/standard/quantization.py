"""Names and codes of quantization in other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.ir import ElementType, Operand, constant
from crosschip.mapping.common import HDI_CODES
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, refusal
from crosschip.mapping.rules import CastOnExport, Ignored, TypeCode, TypeOfOutput
from crosschip.ops.standard.quantization import (
    Dequantize,
    DequantizeBlocks,
    DynamicQuantize,
    Quantize,
    parameters,
)


class OutputScales(Rule):
    """Sets the scales, which have no operand, from the declared type of the output."""

    slot = "scale"
    text = "the scales are those of the output"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], ctx: Import) -> bool:
        return bool(ctx.declared) and ctx.declared[0].quantization is not None

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        quantization = ctx.declared[0].quantization
        assert quantization is not None, "checked by fits"
        ctx.slots |= parameters(quantization)

    def export_operand(self, ctx: Export) -> Operand | None:
        if ctx.outputs[0].type.quantization is None:
            raise refusal(ctx, "dtype", "has no code for unquantized types")
        return None


class QuantizedInput(Rule):
    """The input, if it is quantized and the output is not."""

    slot = "input"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], ctx: Import) -> bool:
        quantized = operand is not None and operand.type.quantization is not None
        return quantized and not (ctx.declared and ctx.declared[0].quantization)

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.slots[self.slot] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        return ctx.operation.operand(self.slot)


class ScaleAxis(Rule):
    """Exports the axis of per-channel scales; ignored on import."""

    slot = ""

    def export_operand(self, ctx: Export) -> Operand | None:
        for operand in (*ctx.operation.inputs, *ctx.outputs):
            quantization = None if operand is None else operand.type.quantization
            if quantization is not None and quantization.axis is not None:
                return constant(
                    np.array([quantization.axis], np.int64), f"{ctx.operation.name}.axis"
                )
        return None


_TYPES: Mapping[str, str | Rule] = {
    "SRC_T": TypeCode(output=False),
    "DST_T": TypeCode(output=True),
    "AXIS": ScaleAxis(),
}
_NODE_TYPES: Mapping[str, str | Rule] = {
    "srcT": TypeCode(False, HDI_CODES[ElementType]),
    "dstT": TypeCode(True, HDI_CODES[ElementType]),
}
_OF_OUTPUT = (OutputScales(), TypeOfOutput("dtype"), Ignored("axis"), Ignored("zero_point"))

map_operator(
    Quantize,
    nnadapter=NNAdapter(
        60,
        ("input", "axis", "scale", CastOnExport("zero_point", ElementType.INT32)),
        other_rules=(TypeOfOutput("dtype"),),
    ),
    nnrt=(NNRt(52, "QUANT_DTYPE_CAST", parameters=_TYPES, other_rules=_OF_OUTPUT),),
    hdi=(HDI(113, "QUANT_DTYPE_CAST", attributes=_NODE_TYPES, other_rules=_OF_OUTPUT),),
    onnx=("QuantizeLinear",),
)

map_operator(
    Dequantize,
    nnadapter=NNAdapter(19),
    nnrt=(NNRt(52, "QUANT_DTYPE_CAST", (QuantizedInput(),), _TYPES),),
    hdi=(HDI(113, "QUANT_DTYPE_CAST", (QuantizedInput(),), _NODE_TYPES),),
    onnx=("DequantizeLinear",),
)

map_operator(DynamicQuantize, onnx=("DynamicQuantizeLinear",))
map_operator(DequantizeBlocks, onnx=("DequantizeLinear",))
