"""Functions of single numbers."""

from __future__ import annotations

from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.standard.unary import (
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
)

_UNARY: dict[str, type[Operator]] = {
    "ABS": Abs,
    "CEIL": Ceil,
    "COS": Cos,
    "EXP": Exp,
    "FLOOR": Floor,
    "LOG": Log,
    "NEG": Neg,
    "ROUND": Round,
    "RSQRT": Rsqrt,
    "SIGN": Sign,
    "SIN": Sin,
    "SQRT": Sqrt,
    "SQUARE": Square,
}


@imports(*_UNARY)
def unary(node: Node) -> Operand:
    return node.add(_UNARY[node.type], node[0])
