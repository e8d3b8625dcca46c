"""Names and codes of reductions in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.reduction import (
    CumProd,
    CumSum,
    ReduceAll,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)

COEFFICIENT = (
    "With REDUCE_TO_END, axes is the one axis named and all after it. A COEFF other than 0 (not "
    "set) and 1 multiplies the result: a MUL after this."
)


def reduce_face(code: int, name: str) -> NNRt:
    """NNRt's operator `REDUCE_<name>`: the face of all reductions is the same."""
    parameters = {"KEEP_DIMS": "keepdim", "REDUCE_TO_END": "", "COEFF": ""}
    return NNRt(code, f"REDUCE_{name}", ("input", "axes"), parameters, COEFFICIENT)


faces(
    ReduceSum,
    nnadapter=NNAdapter(64),
    nnrt=[reduce_face(101, "SUM")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceSum"],
)

faces(
    ReduceProd,
    nnrt=[reduce_face(50, "PROD")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceProd"],
)

faces(
    ReduceMax,
    nnadapter=NNAdapter(63),
    nnrt=[reduce_face(99, "MAX")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceMax"],
)

faces(
    ReduceMin,
    nnrt=[reduce_face(100, "MIN")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceMin"],
)

faces(
    ReduceMean,
    nnadapter=NNAdapter(62),
    nnrt=[reduce_face(42, "MEAN")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceMean"],
)

faces(
    ReduceAll,
    nnrt=[
        reduce_face(51, "ALL"),
        NNRt(
            *(77, "ALL", ("input", "axes"), {"KEEP_DIMS": "keepdim"}),
            translation="The input is first cast to bool: what is not 0 is true.",
        ),
    ],
    hdi=[NodeType.REDUCE_FUSION],
)

faces(
    ReduceL1,
    onnx=["ReduceL1"],
)

faces(
    ReduceSumSquare,
    onnx=["ReduceSumSquare"],
)

faces(
    ReduceL2,
    nnrt=[reduce_face(106, "L2")],
    onnx=["ReduceL2"],
)

faces(
    ReduceLogSum,
    onnx=["ReduceLogSum"],
)

faces(
    ReduceLogSumExp,
    onnx=["ReduceLogSumExp"],
)

faces(
    CumSum,
    nnadapter=NNAdapter(17),
    onnx=["CumSum"],
)

faces(
    CumProd,
    onnx=["CumProd"],
)
