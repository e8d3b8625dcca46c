"""Names and codes of gathering and scattering in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    ScatterElements,
    ScatterND,
    SparseToDense,
)

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
            *(103, "SCATTER_ND", ("indices", "updates")),
            translation="The third input is a shape: `input` is a FILL of it with 0, and what goes "
            "to one place is added.",
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
    hdi=(NodeType.GATHER,),
    onnx=("Gather",),
)
