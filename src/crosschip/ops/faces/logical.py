"""Names and codes of logical and bitwise operators in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, faces
from crosschip.ops.faces.rules import Promoted, Truth
from crosschip.ops.standard.logical import (
    And,
    BitShift,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Not,
    Or,
    Where,
    Xor,
)

_TRUTHS = (Truth("input0"), Truth("input1"))
_CHOSEN = ("input0", Promoted("input1", "input0"))

faces(
    Not,
    nnadapter=NNAdapter(53),
    nnrt=(NNRt(82, "LOGICAL_NOT", (Truth("input"),)),),
    onnx=("Not",),
)

faces(
    And,
    nnadapter=NNAdapter(4),
    nnrt=(NNRt(81, "LOGICAL_AND", _TRUTHS),),
    onnx=("And",),
)

faces(
    Or,
    nnadapter=NNAdapter(55),
    nnrt=(NNRt(89, "LOGICAL_OR", _TRUTHS),),
    onnx=("Or",),
)

faces(
    Xor,
    nnadapter=NNAdapter(93),
    onnx=("Xor",),
)

faces(
    Where,
    nnadapter=NNAdapter(92),
    nnrt=(
        NNRt(62, "SELECT", (Truth("condition"), *_CHOSEN)),
        NNRt(87, "WHERE", ("condition", *_CHOSEN)),
    ),
    onnx=("Where",),
)

faces(
    BitwiseAnd,
    onnx=("BitwiseAnd",),
)

faces(
    BitwiseOr,
    onnx=("BitwiseOr",),
)

faces(
    BitwiseXor,
    onnx=("BitwiseXor",),
)

faces(
    BitwiseNot,
    onnx=("BitwiseNot",),
)

faces(
    BitShift,
    onnx=("BitShift",),
)
