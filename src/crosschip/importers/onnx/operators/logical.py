"""Logical and bitwise operators, and selection."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.ir import Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.logical import (
    And,
    BitShift,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Not,
    Or,
    ShiftDirection,
    Where,
    Xor,
)

_UNARY: dict[str, type[Operator]] = {"BitwiseNot": BitwiseNot, "Not": Not}
_BINARY: dict[str, type[Operator]] = {
    "And": And,
    "BitwiseAnd": BitwiseAnd,
    "BitwiseOr": BitwiseOr,
    "BitwiseXor": BitwiseXor,
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
    direction = only("direction", node.text("direction"), *ShiftDirection.__members__)
    return node.add(BitShift, node[0], node[1], ShiftDirection[direction])


@imports("Where")
def where(node: Node) -> Operand:
    return node.add(Where, node[0], node[1], node[2])
