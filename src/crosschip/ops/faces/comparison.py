"""Names and codes of comparisons in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import HDI, NNAdapter, NNRt, faces
from crosschip.ops.faces.rules import PlainOutput, Promoted
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)

_PAIR = ("input0", Promoted("input1", "input0"))
_PLAIN = (PlainOutput(),)

faces(
    Equal,
    nnadapter=NNAdapter(21),
    nnrt=(NNRt(70, "EQUAL", _PAIR, given=_PLAIN),),
    onnx=("Equal",),
)

faces(
    NotEqual,
    nnadapter=NNAdapter(54),
    nnrt=(NNRt(72, "NOT_EQUAL", _PAIR, given=_PLAIN),),
)

faces(
    Less,
    nnadapter=NNAdapter(41),
    nnrt=(NNRt(61, "LESS", _PAIR, given=_PLAIN),),
    onnx=("Less",),
)

faces(
    LessEqual,
    nnadapter=NNAdapter(42),
    nnrt=(NNRt(18, "LESS_EQUAL", _PAIR, given=_PLAIN),),
    hdi=(HDI(78, "LESS_EQUAL", _PAIR, given=_PLAIN),),
    onnx=("LessOrEqual",),
)

faces(
    Greater,
    nnadapter=NNAdapter(32),
    nnrt=(NNRt(71, "GREATER", _PAIR, given=_PLAIN),),
    onnx=("Greater",),
)

faces(
    GreaterEqual,
    nnadapter=NNAdapter(33),
    nnrt=(NNRt(73, "GREATER_EQUAL", _PAIR, given=_PLAIN),),
    onnx=("GreaterOrEqual",),
)
