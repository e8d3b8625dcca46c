"""Names and codes of concatenation and splitting in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, number, slot_operand
from crosschip.mapping.rules import PassThrough
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack


class OutputCount(Rule):
    """Sets `num`, which has no operand, to the number of outputs."""

    slot = "num"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        ctx.slots[self.slot] = len(ctx.declared)


class EqualSplit(Rule):
    """The number of equal pieces, which sets `split` if no sizes are listed."""

    slot = ""
    text = "without SIZE_SPLITS, there are OUTPUT_NUM pieces of equal size"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        sizes = ctx.slots.get("split")
        if isinstance(sizes, Operand) and sizes.type.shape != (0,):
            return
        count = len(ctx.declared) if operand is None else int(number(operand, "OUTPUT_NUM"))
        axis_operand = ctx.slots["axis"]
        axis = int(number(axis_operand, "axis")) if isinstance(axis_operand, Operand) else 0
        shape = slot_operand(ctx, "input").type.shape or ()
        if not -len(shape) <= axis < len(shape) or not isinstance(size := shape[axis], int):
            raise ModelError("input: must have a known size on the axis")
        if count < 1 or size % count:
            raise ModelError(f"split: {size} is not {count} pieces of equal size")
        ctx.slots["split"] = (size // count,) * count

    def export_operand(self, ctx: Export) -> Operand | None:
        count = np.array([len(ctx.outputs)], np.int32)
        return constant(count, f"{ctx.operation.name}.output_num")


map_operator(
    Concat,
    nnadapter=NNAdapter(13),
    nnrt=(NNRt(7, "CONCAT", ("parts",), {"AXIS": PassThrough("axis", default=0)}),),
    hdi=(HDI(31, "CONCAT", ("parts",), {"axis": "axis"}),),
    onnx=("Concat",),
)

map_operator(
    Stack,
    nnadapter=NNAdapter(82),
    nnrt=(NNRt(36, "STACK", ("parts",), {"AXIS": "axis"}),),
    hdi=(HDI(150, "STACK", ("parts",), {"axis": "axis"}),),
)

map_operator(
    Split,
    nnadapter=NNAdapter(79),
    nnrt=(
        NNRt(
            32,
            "SPLIT",
            parameters={
                "AXIS": PassThrough("axis", default=0),
                "SIZE_SPLITS": "split",
                "OUTPUT_NUM": EqualSplit(),
            },
            outputs=None,
        ),
    ),
    hdi=(
        HDI(
            145,
            "SPLIT",
            attributes={"axis": "axis", "sizeSplits": "split", "outputNum": EqualSplit()},
        ),
    ),
    onnx=("Split",),
)

map_operator(
    Unstack,
    nnadapter=NNAdapter(91),
    nnrt=(
        NNRt(
            57, "UNSTACK", parameters={"AXIS": "axis"}, other_rules=(OutputCount(),), outputs=None
        ),
    ),
)

map_operator(Meshgrid, nnadapter=NNAdapter(50))
