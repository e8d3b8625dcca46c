"""Names and codes of operators that repeat, shift, reverse or blank in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import filled, numbers, rank_of, shape_known
from crosschip.mapping.translation import Export, Import, Rule
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu


class RepeatedAxes(Rule):
    """The axes that are repeated; left out, all, and new ones in front if there are more."""

    slot = ""
    text = "DIMS are the axes that the repeats are for; the others are repeated once"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        input, repeats = filled(use, "input"), filled(use, "repeats")
        rank = rank_of(input, "input")
        if operand is not None:
            counts = np.ones(rank, np.int64)
            axes = numbers(operand, "DIMS")
            values = numbers(repeats, "repeats")
            if axes.size != values.size or np.any((axes < -rank) | (axes >= rank)):
                raise ModelError(f"DIMS: {axes.tolist()} do not fit {values.size} repeats")
            counts[axes] = values
            use.slots["repeats"] = tuple(counts.tolist())
            return
        shape = shape_known(repeats.type.shape)
        if shape and shape[0] > rank:
            axes = np.arange(shape[0] - rank)
            use.slots["input"] = use.builder.add(Unsqueeze, input, tuple(axes.tolist()))

    def export_operand(self, use: Export) -> Operand | None:
        return None


class RepeatsWithoutInput(Rule):
    """The repeats, where no input says them."""

    slot = "repeats"
    text = "dims are the repeats where there is no second input"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if self.slot not in use.slots and operand is not None:
            use.slots[self.slot] = operand
        RepeatedAxes().import_operand(None, use)

    def export_operand(self, use: Export) -> Operand | None:
        return None


map_operator(
    Tile,
    nnadapter=NNAdapter(87),
    nnrt=(
        NNRt(
            *(40, "TILE", ("input", "repeats")),
            parameters={"DIMS": RepeatedAxes()},
        ),
    ),
    hdi=(HDI(160, "TILE_FUSION", ("input", "repeats"), {"dims": RepeatsWithoutInput()}),),
    onnx=("Tile",),
)

map_operator(
    Roll,
    nnadapter=NNAdapter(71),
)

map_operator(
    ReverseSequence,
    onnx=("ReverseSequence",),
)

map_operator(
    Trilu,
    onnx=("Trilu",),
)
