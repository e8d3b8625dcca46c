"""Names and codes of matrix operators in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul

faces(
    MatMul,
    nnadapter=NNAdapter(47),
    nnrt=[
        NNRt(
            *(19, "MATMUL", ("x", "y")),
            {"TRANSPOSE_A": "transpose_x", "TRANSPOSE_B": "transpose_y", "ACTIVATION_TYPE": ""},
            "An ACTIVATION_TYPE becomes an operator after this.",
        )
    ],
    hdi=[NodeType.MATMUL_FUSION],
    onnx=["MatMul"],
)

faces(
    FullyConnected,
    nnadapter=NNAdapter(29),
    nnrt=[
        NNRt(
            *(15, "FULL_CONNECTION", ("input", "weight", "bias")),
            {"AXIS": "", "ACTIVATION_TYPE": "fuse_code", "HAS_BIAS": "", "USE_AXIS": ""},
            "With USE_AXIS, the input is first flattened from AXIS on. Without HAS_BIAS there is "
            "no bias input. An int32 bias without quantization gets that of the rule below.",
        )
    ],
    hdi=[NodeType.FULL_CONNECTION],
    onnx=["Gemm"],
)

faces(
    Det,
    onnx=["Det"],
)
