"""Names and codes of conversions of element types in other systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import ElementType, Operand
from crosschip.mapping.common import HDI_CODES
from crosschip.mapping.nodes import activation
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import Told, TypeNumber, type_number
from crosschip.mapping.translation import Export, Import, Rule, TypeOfOutput, refusal
from crosschip.ops.standard.conversion import Assign, BitCast, Cast


class OfPlain(Rule):
    """The input, where neither it nor the output is quantized."""

    slot = "input"
    text = "where the input or the output is quantized, this is DEQUANTIZE or QUANTIZE"

    def fits(self, operand: Operand | None, values: Sequence[Operand | None], use: Import) -> bool:
        types = [operand.type] if operand is not None else []
        return not any(type_.quantization for type_ in (*types, *use.declared))

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        use.slots[self.slot] = operand

    def export_operand(self, use: Export) -> Operand | None:
        operand = use.operation.operand(self.slot)
        if operand is not None and operand.type.quantization is not None:
            raise refusal(use, self.slot, "there is no number for what is quantized")
        return operand


class WrittenType(Rule):
    """The number of the element type, which the output tells, too."""

    slot = ""

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return

    def export_operand(self, use: Export) -> Operand | None:
        return type_number(use, use.outputs[0].type, HDI_CODES[ElementType], np.int32)


map_operator(
    Assign,
    nnadapter=NNAdapter(7),
    hdi=(activation(15, "LINEAR"), activation(0, "NO_ACTIVATION")),
    onnx=("Identity",),
)

map_operator(
    Cast,
    nnadapter=NNAdapter(10, ("input", "dtype")),
    nnrt=(
        NNRt(6, "CAST", ("input", "dtype")),
        NNRt(
            *(52, "QUANT_DTYPE_CAST", (OfPlain(),)),
            parameters={"SRC_T": TypeNumber(output=False), "DST_T": "dtype", "AXIS": Told()},
        ),
    ),
    hdi=(
        HDI(28, "CAST", ("input", WrittenType()), other_rules=(TypeOfOutput("dtype"),)),
        HDI(
            *(113, "QUANT_DTYPE_CAST", (OfPlain(),)),
            attributes={"srcT": TypeNumber(False, HDI_CODES[ElementType]), "dstT": "dtype"},
        ),
    ),
    onnx=("Cast", "CastLike"),
)

map_operator(
    BitCast,
    onnx=("BitCast",),
)
