"""Names and codes of gathering and scattering in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.ops.definition.faces import HDI, NNAdapter, NNRt, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule, refusal
from crosschip.ops.faces.rules import Fixed, filled
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


class Zeros(Rule):
    """The tensor that is written to: zeros of a shape that is an operand there."""

    slot = "input"
    text = "the third input is the shape of zeros that are `input`"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        if operand is None:
            raise ModelError("shape: is missing")
        dtype = filled(use, "updates").type.element_type.dtype
        use.slots[self.slot] = use.builder.add(Fill, operand, np.zeros((), dtype))

    def outward(self, use: Outward) -> Operand | None:
        operand = use.operation.operand(self.slot)
        if operand is None or operand.value is None or np.any(np.asarray(operand.value)):
            raise refusal(use, self.slot, "has no operand there, and is not 0")
        if operand.type.quantization is not None:
            raise refusal(use, self.slot, "there is no number for what is quantized")
        shape = np.array(np.asarray(operand.value).shape, np.int32)
        return constant(shape, f"{use.operation.name}.shape")


faces(
    GatherND,
    nnrt=(NNRt(108, "GATHER_ND", ("input", "indices")),),
    onnx=("GatherND",),
)

faces(
    GatherElements,
    onnx=("GatherElements",),
)

faces(
    ScatterND,
    nnrt=(
        NNRt(
            *(103, "SCATTER_ND", ("indices", "updates", Zeros())),
            given=(Fixed("reduction", Scatter.ADD),),
        ),
    ),
    onnx=("ScatterND",),
)

faces(
    ScatterElements,
    onnx=("ScatterElements", "Scatter"),
)

faces(
    SparseToDense,
    nnrt=(NNRt(88, "SPARSE_TO_DENSE", ("indices", "values", "shape")),),
)

faces(
    Gather,
    nnadapter=NNAdapter(30),
    nnrt=(NNRt(16, "GATHER", ("input", "indices", "axis")),),
    hdi=(HDI(69, "GATHER", ("input", "indices", "axis")),),
    onnx=("Gather",),
)
