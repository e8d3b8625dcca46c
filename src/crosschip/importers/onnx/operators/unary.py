"""Elementwise functions of one operand."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.unary import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Cos,
    Cosh,
    Erf,
    Exp,
    Floor,
    IsInf,
    IsNaN,
    Log,
    Neg,
    Reciprocal,
    Round,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Tan,
)

_UNARY: dict[str, type[Operator]] = {
    "Abs": Abs,
    "Acos": Acos,
    "Acosh": Acosh,
    "Asin": Asin,
    "Asinh": Asinh,
    "Atan": Atan,
    "Atanh": Atanh,
    "Ceil": Ceil,
    "Cos": Cos,
    "Cosh": Cosh,
    "Erf": Erf,
    "Exp": Exp,
    "Floor": Floor,
    "IsNaN": IsNaN,
    "Log": Log,
    "Neg": Neg,
    "Reciprocal": Reciprocal,
    "Round": Round,
    "Sign": Sign,
    "Sin": Sin,
    "Sinh": Sinh,
    "Sqrt": Sqrt,
    "Tan": Tan,
}


@imports(*_UNARY)
def unary(node: Node) -> Operand:
    return node.add(_UNARY[node.type], node[0])


@imports("IsInf")
def is_inf(node: Node) -> Operand:
    negative, positive = node.flag("detect_negative"), node.flag("detect_positive")
    return node.add(IsInf, node[0], negative, positive)
