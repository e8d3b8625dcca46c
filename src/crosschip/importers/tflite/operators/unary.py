"""Functions of single numbers."""

from __future__ import annotations

from math import inf

from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, Operand
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Clip
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


@imports("LOG")
def log(node: Node) -> Operand:
    """Import a logarithm; a byte is no NaN, so that of a negative number is the least one.

    The kernel of int16 interpolates between the entries of a table, near 0 in its own way.
    """
    operand, quantization = node[0], node[0].type.quantization
    if quantization is not None and operand.type.element_type is not ElementType.INT16:
        operand = node.add(Clip, operand, 0.0, inf, quantization=quantization)
    return node.add(Log, operand)
