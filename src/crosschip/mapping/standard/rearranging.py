"""Names and codes of operators that tile, roll, reverse or mask in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Import, Rule, numbers, rank_of, slot_operand, static_shape
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu


class RepeatAxes(Rule):
    """The repeated axes; if omitted, `repeats` counts all axes, and new leading axes if longer."""

    slot = ""
    text = "DIMS are the axes that the repeats are for; the others are repeated once"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        input, repeats = slot_operand(ctx, "input"), slot_operand(ctx, "repeats")
        rank = rank_of(input, "input")
        if operand is not None:
            counts = np.ones(rank, np.int64)
            axes = numbers(operand, "DIMS")
            values = numbers(repeats, "repeats")
            if axes.size != values.size or np.any((axes < -rank) | (axes >= rank)):
                raise ModelError(f"DIMS: {axes.tolist()} do not fit {values.size} repeats")
            counts[axes] = values
            ctx.slots["repeats"] = tuple(counts.tolist())
            return
        shape = static_shape(repeats.type.shape)
        if shape and shape[0] > rank:
            axes = np.arange(shape[0] - rank)
            ctx.slots["input"] = ctx.builder.add(Unsqueeze, input, tuple(axes.tolist()))


class RepeatsAttribute(Rule):
    """The attribute for the repeats, which is read if the second input is omitted."""

    slot = "repeats"
    text = "dims are the repeats where there is no second input"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if self.slot not in ctx.slots and operand is not None:
            ctx.slots[self.slot] = operand
        RepeatAxes().import_operand(None, ctx)


map_operator(
    Tile,
    nnadapter=NNAdapter(87),
    nnrt=(NNRt(40, "TILE", ("input", "repeats"), parameters={"DIMS": RepeatAxes()}),),
    hdi=(HDI(160, "TILE_FUSION", ("input", "repeats"), {"dims": RepeatsAttribute()}),),
    onnx=("Tile",),
)

map_operator(Roll, nnadapter=NNAdapter(71))
map_operator(ReverseSequence, onnx=("ReverseSequence",))
map_operator(Trilu, onnx=("Trilu",))
