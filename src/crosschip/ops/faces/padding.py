"""Names and codes of padding in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.padding import Pad

faces(
    Pad,
    nnadapter=NNAdapter(56),
    nnrt=(
        NNRt(
            *(24, "PAD", ("input", "pads")),
            parameters={"CONSTANT_VALUE": "value", "PADDING_MODE": "mode"},
            translation="`pads` is flattened. Modes 0, 1 and 2 are CONSTANT, REFLECT and "
            "SYMMETRIC; 3 is reserved.",
        ),
    ),
    hdi=(NodeType.PAD_FUSION,),
    onnx=("Pad",),
)
