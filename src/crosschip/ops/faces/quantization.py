"""Names and codes of quantization in other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.ir import ElementType, Operand, constant
from crosschip.ops.definition.faces import HDI, NNAdapter, NNRt, faces
from crosschip.ops.definition.translation import (
    Inward,
    Outward,
    Rule,
    TypeOfOutput,
    Written,
    refusal,
)
from crosschip.ops.faces.common import HDI_CODES
from crosschip.ops.faces.rules import Told, TypeNumber
from crosschip.ops.standard.quantization import (
    Dequantize,
    DequantizeBlocks,
    DynamicQuantize,
    Quantize,
    parameters,
)


class ScalesOfOutput(Rule):
    """Scales that no operand tells: they are those of the output."""

    slot = "scale"
    text = "the scales are those of the output"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], use: Inward) -> bool:
        return bool(use.declared) and use.declared[0].quantization is not None

    def inward(self, operand: Operand | None, use: Inward) -> None:
        kept = use.declared[0].quantization
        assert kept is not None, "else this is not the row"
        use.slots |= parameters(kept)

    def outward(self, use: Outward) -> Operand | None:
        if use.outputs[0].type.quantization is None:
            raise refusal(use, "dtype", "there is no number for floats of so few bits")
        return None


class OfQuantized(Rule):
    """The input, where it is quantized."""

    slot = "input"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], use: Inward) -> bool:
        quantized = operand is not None and operand.type.quantization is not None
        return quantized and not (use.declared and use.declared[0].quantization)

    def inward(self, operand: Operand | None, use: Inward) -> None:
        use.slots[self.slot] = operand

    def outward(self, use: Outward) -> Operand | None:
        return use.operation.operand(self.slot)


class AxisOfScales(Rule):
    """The axis that several scales run along, which the quantization tells."""

    slot = ""

    def inward(self, operand: Operand | None, use: Inward) -> None:
        return

    def outward(self, use: Outward) -> Operand | None:
        for operand in (*use.operation.inputs, *use.outputs):
            kept = None if operand is None else operand.type.quantization
            if kept is not None and kept.axis is not None:
                return constant(np.array([kept.axis], np.int64), f"{use.operation.name}.axis")
        return None


_TYPES: Mapping[str, str | Rule] = {
    "SRC_T": TypeNumber(output=False),
    "DST_T": TypeNumber(output=True),
    "AXIS": AxisOfScales(),
}
_NODE_TYPES: Mapping[str, str | Rule] = {
    "srcT": TypeNumber(False, HDI_CODES[ElementType]),
    "dstT": TypeNumber(True, HDI_CODES[ElementType]),
}
_OF_OUTPUT = (ScalesOfOutput(), TypeOfOutput("dtype"), Told("axis"), Told("zero_point"))

faces(
    Quantize,
    nnadapter=NNAdapter(
        60,
        ("input", "axis", "scale", Written("zero_point", ElementType.INT32)),
        given=(TypeOfOutput("dtype"),),
    ),
    nnrt=(
        NNRt(
            *(52, "QUANT_DTYPE_CAST"),
            parameters=_TYPES,
            given=_OF_OUTPUT,
        ),
    ),
    hdi=(HDI(113, "QUANT_DTYPE_CAST", attributes=_NODE_TYPES, given=_OF_OUTPUT),),
    onnx=("QuantizeLinear",),
)

faces(
    Dequantize,
    nnadapter=NNAdapter(19),
    nnrt=(NNRt(52, "QUANT_DTYPE_CAST", (OfQuantized(),), _TYPES),),
    hdi=(HDI(113, "QUANT_DTYPE_CAST", (OfQuantized(),), _NODE_TYPES),),
    onnx=("DequantizeLinear",),
)

faces(
    DynamicQuantize,
    onnx=("DynamicQuantizeLinear",),
)

faces(
    DequantizeBlocks,
    onnx=("DequantizeLinear",),
)
