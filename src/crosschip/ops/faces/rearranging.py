"""Names and codes of operators that repeat, shift, reverse or blank in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu

faces(
    Tile,
    nnadapter=NNAdapter(87),
    nnrt=(
        NNRt(
            *(40, "TILE", ("input", "repeats")),
            parameters={"DIMS": ""},
            translation="DIMS are the axes that the repeats are for; the others are repeated once.",
        ),
    ),
    hdi=(NodeType.TILE_FUSION,),
    onnx=("Tile",),
)

faces(
    Roll,
    nnadapter=NNAdapter(71),
)

faces(
    ReverseSequence,
    onnx=("ReverseSequence",),
)

faces(
    Trilu,
    onnx=("Trilu",),
)
