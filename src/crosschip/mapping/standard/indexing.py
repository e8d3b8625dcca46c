"""Names and codes of gathering and scattering in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, refusal, slot_operand
from crosschip.mapping.rules import FixedValue
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
    SparseToDense,
)


class ZerosOfShape(Rule):
    """The input of SCATTER_ND: zeros, of which NNRt has the shape as an operand."""

    slot = "input"
    text = "the third input is the shape of zeros that are `input`"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            raise ModelError("shape: is missing")
        dtype = slot_operand(ctx, "updates").type.element_type.dtype
        ctx.slots[self.slot] = ctx.builder.add(Fill, operand, np.zeros((), dtype))

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        if operand is None or operand.value is None or np.any(np.asarray(operand.value)):
            raise refusal(ctx, self.slot, "has no operand in the target, and is not 0")
        if operand.type.quantization is not None:
            raise refusal(ctx, self.slot, "has no code for quantized operands")
        shape = np.array(np.asarray(operand.value).shape, np.int32)
        return constant(shape, f"{ctx.operation.name}.shape")


map_operator(GatherND, nnrt=(NNRt(108, "GATHER_ND", ("input", "indices")),), onnx=("GatherND",))
map_operator(GatherElements, onnx=("GatherElements",))

map_operator(
    ScatterND,
    nnrt=(
        NNRt(
            103,
            "SCATTER_ND",
            ("indices", "updates", ZerosOfShape()),
            other_rules=(FixedValue("reduction", Scatter.ADD),),
        ),
    ),
    onnx=("ScatterND",),
)

map_operator(ScatterElements, onnx=("ScatterElements", "Scatter"))
map_operator(SparseToDense, nnrt=(NNRt(88, "SPARSE_TO_DENSE", ("indices", "values", "shape")),))

map_operator(
    Gather,
    nnadapter=NNAdapter(30),
    nnrt=(NNRt(16, "GATHER", ("input", "indices", "axis")),),
    hdi=(HDI(69, "GATHER", ("input", "indices", "axis")),),
    onnx=("Gather",),
)
