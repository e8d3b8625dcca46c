"""Names and codes of operators that create tensors in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, ModelError, Operand, constant
from crosschip.mapping.common import NNRT_CODES, Numbers
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, number, refusal, slot_operand, type_code
from crosschip.mapping.rules import TypeOfOutput
from crosschip.ops.standard.creation import Fill, FillLike, OneHot, Range, Rank, ShapeOf


class ValueTypeCode(Rule):
    """The code of the element type of `value`; `TypedValue` reads the imported code.

    Args:
        codes: the codes of element types: ours by theirs.
    """

    slot = ""
    text = "VALUE is float32 and becomes DATA_TYPE"

    def __init__(self, codes: Numbers = NNRT_CODES[ElementType]) -> None:
        self._codes = codes

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        declared = ctx.declared[0].element_type.code
        code = declared if operand is None else self._codes.get(int(number(operand, "DATA_TYPE")))
        if code is None:
            raise ModelError("DATA_TYPE: there is no such type")
        ctx.slots["dtype"] = code

    def export_operand(self, ctx: Export) -> Operand | None:
        return type_code(ctx, ctx.outputs[0].type, self._codes)


class TypedValue(Rule):
    """The value of CONSTANT_OF_SHAPE, which NNRt stores as float32; comes after `ValueTypeCode`."""

    slot = "value"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        dtype = ElementType.from_code(int(str(ctx.slots.pop("dtype")))).dtype
        value = 0.0 if operand is None else number(operand, "VALUE")
        ctx.slots[self.slot] = constant(np.array(value).astype(dtype), "value")

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        if operand is None or operand.value is None or operand.type.quantization is not None:
            raise refusal(ctx, self.slot, "has no code for operands that are not real constants")
        array = np.asarray(operand.value).reshape(-1)
        if not np.array_equal(array.astype(np.float32), array):
            raise refusal(ctx, self.slot, f"has no code for {array.item()}")
        return constant(array.astype(np.float32), f"{ctx.operation.name}.value")


class TypeExemplar(Rule):
    """The input of RANGE, which NNRt reads for its element type only."""

    slot = ""
    text = "start, end and step have the element type of the input, of which nothing else matters"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            raise ModelError("input: is missing")
        ctx.slots["start"] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        return ctx.operation.operand("start")


class RangeBound(Rule):
    """The start, end or step of RANGE, which NNRt stores as an integer.

    Args:
        slot: the slot.
        default: the value of an omitted operand.
    """

    def __init__(self, slot: str, default: int = 0) -> None:
        self.slot = slot
        self._default = default

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        exemplar = slot_operand(ctx, "start")
        value = self._default if operand is None else number(operand, self.slot)
        array = np.array(value).astype(exemplar.type.element_type.dtype)
        if self.slot == "start":
            ctx.slots |= {"end": exemplar, "step": exemplar}
        ctx.slots[self.slot] = constant(array, self.slot)

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        if operand is None or operand.value is None or operand.type.quantization is not None:
            raise refusal(ctx, self.slot, "has no code for operands that are not constant")
        value = np.asarray(operand.value).item()
        if value != int(value):
            raise refusal(ctx, self.slot, f"has no code for {value}")
        return constant(np.array([int(value)], np.int64), operand.name)


map_operator(
    ShapeOf,
    nnadapter=NNAdapter(73),
    nnrt=(NNRt(27, "SHAPE", other_rules=(TypeOfOutput("dtype"),)),),
    hdi=(HDI(130, "SHAPE", other_rules=(TypeOfOutput("dtype"),)),),
    onnx=("Shape",),
)

map_operator(Rank, nnrt=(NNRt(98, "RANK"),))

map_operator(
    Fill,
    nnadapter=NNAdapter(24),
    nnrt=(
        NNRt(14, "FILL", ("value", "shape")),
        NNRt(
            68,
            "CONSTANT_OF_SHAPE",
            ("shape",),
            parameters={"DATA_TYPE": ValueTypeCode(), "VALUE": TypedValue()},
        ),
    ),
    hdi=(HDI(66, "FILL", ("value", "shape")),),
    onnx=("ConstantOfShape",),
)

map_operator(FillLike, nnadapter=NNAdapter(25))

map_operator(
    Range,
    nnadapter=NNAdapter(61),
    nnrt=(
        NNRt(
            66,
            "RANGE",
            (TypeExemplar(),),
            parameters={
                "START": RangeBound("start"),
                "LIMIT": RangeBound("end"),
                "DELTA": RangeBound("step", 1),
            },
        ),
    ),
    onnx=("Range",),
)

map_operator(
    OneHot,
    nnrt=(
        NNRt(
            23,
            "ONE_HOT",
            ("indices", "depth", "on_value", "off_value"),
            parameters={"AXIS": "axis"},
        ),
    ),
    hdi=(
        HDI(
            105,
            "ONE_HOT",
            ("indices", "depth", "on_value", "off_value"),
            attributes={"axis": "axis"},
        ),
    ),
    onnx=("OneHot",),
)
