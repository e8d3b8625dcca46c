"""Names and codes of comparisons in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import TypePromotion, UnquantizedOutput
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)

_PAIR = ("input0", TypePromotion("input1", "input0"))
_PLAIN = (UnquantizedOutput(),)

map_operator(
    Equal,
    nnadapter=NNAdapter(21),
    nnrt=(NNRt(70, "EQUAL", _PAIR, other_rules=_PLAIN),),
    onnx=("Equal",),
)

map_operator(
    NotEqual, nnadapter=NNAdapter(54), nnrt=(NNRt(72, "NOT_EQUAL", _PAIR, other_rules=_PLAIN),)
)

map_operator(
    Less,
    nnadapter=NNAdapter(41),
    nnrt=(NNRt(61, "LESS", _PAIR, other_rules=_PLAIN),),
    onnx=("Less",),
)

map_operator(
    LessEqual,
    nnadapter=NNAdapter(42),
    nnrt=(NNRt(18, "LESS_EQUAL", _PAIR, other_rules=_PLAIN),),
    hdi=(HDI(78, "LESS_EQUAL", _PAIR, other_rules=_PLAIN),),
    onnx=("LessOrEqual",),
)

map_operator(
    Greater,
    nnadapter=NNAdapter(32),
    nnrt=(NNRt(71, "GREATER", _PAIR, other_rules=_PLAIN),),
    onnx=("Greater",),
)

map_operator(
    GreaterEqual,
    nnadapter=NNAdapter(33),
    nnrt=(NNRt(73, "GREATER_EQUAL", _PAIR, other_rules=_PLAIN),),
    onnx=("GreaterOrEqual",),
)
