"""Names and codes of logical and bitwise operators in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import BoolCast, TypePromotion
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

_BOOL_PAIR = (BoolCast("input0"), BoolCast("input1"))
_BRANCHES = ("input0", TypePromotion("input1", "input0"))

map_operator(
    Not,
    nnadapter=NNAdapter(53),
    nnrt=(NNRt(82, "LOGICAL_NOT", (BoolCast("input"),)),),
    onnx=("Not",),
)

map_operator(
    And, nnadapter=NNAdapter(4), nnrt=(NNRt(81, "LOGICAL_AND", _BOOL_PAIR),), onnx=("And",)
)

map_operator(Or, nnadapter=NNAdapter(55), nnrt=(NNRt(89, "LOGICAL_OR", _BOOL_PAIR),), onnx=("Or",))
map_operator(Xor, nnadapter=NNAdapter(93), onnx=("Xor",))

map_operator(
    Where,
    nnadapter=NNAdapter(92),
    nnrt=(
        NNRt(62, "SELECT", (BoolCast("condition"), *_BRANCHES)),
        NNRt(87, "WHERE", ("condition", *_BRANCHES)),
    ),
    onnx=("Where",),
)

map_operator(BitwiseAnd, onnx=("BitwiseAnd",))
map_operator(BitwiseOr, onnx=("BitwiseOr",))
map_operator(BitwiseXor, onnx=("BitwiseXor",))
map_operator(BitwiseNot, onnx=("BitwiseNot",))
map_operator(BitShift, onnx=("BitShift",))
