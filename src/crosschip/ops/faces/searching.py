"""Names and codes of searches in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, TopK, Unique

faces(
    ArgMax,
    nnadapter=NNAdapter(5, ("input", "axis", "keepdim", "dtype")),
    nnrt=[
        NNRt(
            *(54, "ARG_MAX", ("input",)),
            {"AXIS": "axis", "KEEPDIMS": "keepdim", "TOP_K": "", "OUT_MAX_VALUE": ""},
            "With TOP_K above 1 it is TOP_K's indices, and with OUT_MAX_VALUE the values: "
            "REDUCE_MAX, or TOP_K's values.",
        )
    ],
    hdi=[NodeType.ARGMAX_FUSION],
    onnx=["ArgMax"],
)

faces(
    ArgMin,
    nnadapter=NNAdapter(6, ("input", "axis", "keepdim", "dtype")),
    onnx=["ArgMin"],
)

faces(
    TopK,
    nnadapter=NNAdapter(88),
    nnrt=[
        NNRt(
            *(53, "TOP_K", ("input", "k"), {"AXIS": "axis", "SORTED": ""}),
            "SORTED true finds the greatest, in descending order; its documentation has false "
            "find the greatest in ascending order: a reversal of both outputs follows. The indices "
            "are int32.",
        )
    ],
    hdi=[NodeType.TOPK_FUSION],
    onnx=["TopK"],
)

faces(
    NonZero,
    onnx=("NonZero",),
)

faces(
    Unique,
    onnx=("Unique",),
)
