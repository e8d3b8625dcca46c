"""Names and codes of conversions of element types in other systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import ElementType, Operand
from crosschip.ops.definition.faces import HDI, NNAdapter, NNRt, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule, TypeOfOutput, refusal
from crosschip.ops.faces.common import HDI_CODES
from crosschip.ops.faces.nodes import activation
from crosschip.ops.faces.rules import Told, TypeNumber, type_number
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


class WrittenType(Rule):
    """The number of the element type, which the output tells, too."""

    slot = ""

    def inward(self, operand: Operand | None, use: Inward) -> None:
        return

    def outward(self, use: Outward) -> Operand | None:
        return type_number(use, use.outputs[0].type, HDI_CODES[ElementType], np.int32)


faces(
    Assign,
    nnadapter=NNAdapter(7),
    hdi=(activation(15, "LINEAR"), activation(0, "NO_ACTIVATION")),
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
    hdi=(
        HDI(28, "CAST", ("input", WrittenType()), given=(TypeOfOutput("dtype"),)),
        HDI(
            *(113, "QUANT_DTYPE_CAST", (OfPlain(),)),
            attributes={"srcT": TypeNumber(False, HDI_CODES[ElementType]), "dstT": "dtype"},
        ),
    ),
    onnx=("Cast", "CastLike"),
)

faces(
    BitCast,
    onnx=("BitCast",),
)
