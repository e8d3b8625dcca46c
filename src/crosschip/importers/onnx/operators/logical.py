"""Comparisons, truth values and bits."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.ir import Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.comparison import Equal, Greater, GreaterEqual, Less, LessEqual
from crosschip.ops.standard.logical import (
    And,
    BitShift,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Direction,
    Not,
    Or,
    Xor,
)
from crosschip.ops.standard.unary import IsInf, IsNaN

_UNARY: dict[str, type[Operator]] = {"BitwiseNot": BitwiseNot, "IsNaN": IsNaN, "Not": Not}
_BINARY: dict[str, type[Operator]] = {
    "And": And,
    "BitwiseAnd": BitwiseAnd,
    "BitwiseOr": BitwiseOr,
    "BitwiseXor": BitwiseXor,
    "Equal": Equal,
    "Greater": Greater,
    "GreaterOrEqual": GreaterEqual,
    "Less": Less,
    "LessOrEqual": LessEqual,
    "Or": Or,
    "Xor": Xor,
}


@imports(*_UNARY)
def unary(node: Node) -> Operand:
    return node.add(_UNARY[node.type], node[0])


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    return node.add(_BINARY[node.type], node[0], node[1])


@imports("BitShift")
def bit_shift(node: Node) -> Operand:
    direction = only("direction", node.text("direction"), *Direction.__members__)
    return node.add(BitShift, node[0], node[1], Direction[direction])


@imports("IsInf")
def is_inf(node: Node) -> Operand:
    negative, positive = node.flag("detect_negative"), node.flag("detect_positive")
    return node.add(IsInf, node[0], negative, positive)
