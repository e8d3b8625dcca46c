"""Names and codes of padding in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, number, refusal, slot_operand
from crosschip.mapping.rules import Pairs
from crosschip.ops.standard.padding import Pad


class PadValue(Rule):
    """The padding value, which NNRt stores as float32, and PAD with the input's element type."""

    slot = "value"
    text = "`value` is float32"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            return
        type_ = slot_operand(ctx, "input").type
        element_type = ElementType.FLOAT32 if type_.quantization else type_.element_type
        array = np.array(number(operand, self.slot)).astype(element_type.dtype)
        ctx.slots[self.slot] = constant(array, operand.name)

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        if operand is None:
            return None
        if operand.value is None or operand.type.quantization is not None:
            raise refusal(ctx, self.slot, "must be a constant real in the target")
        array = np.asarray(operand.value)
        if not np.array_equal(array.astype(np.float32), array):
            raise refusal(ctx, self.slot, f"has no code for {array.item()}")
        return constant(array.astype(np.float32).reshape(-1), operand.name)


class PadsAttribute(Rule):
    """The attribute for the pads, which is read if the second input is omitted."""

    slot = "pads"
    text = "paddings count where there is no second input"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if self.slot not in ctx.slots:
            Pairs(self.slot).import_operand(operand, ctx)


map_operator(
    Pad,
    nnadapter=NNAdapter(56),
    nnrt=(
        NNRt(
            24,
            "PAD",
            ("input", Pairs("pads")),
            parameters={"CONSTANT_VALUE": PadValue(), "PADDING_MODE": "mode"},
        ),
    ),
    hdi=(
        HDI(
            107,
            "PAD_FUSION",
            ("input", Pairs("pads")),
            {"paddings": PadsAttribute(), "constantValue": PadValue(), "paddingMode": "mode"},
        ),
    ),
    onnx=("Pad",),
)
