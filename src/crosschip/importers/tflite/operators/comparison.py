"""Comparisons, logical operators, and choices between tensors."""

from __future__ import annotations

from crosschip.importers.facts import rank_of, shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from crosschip.ops.standard.layout import Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Not, Or, Where
from crosschip.ops.standard.searching import NonZero

_BINARY: dict[str, type[Operator]] = {
    "EQUAL": Equal,
    "GREATER": Greater,
    "GREATER_EQUAL": GreaterEqual,
    "LESS": Less,
    "LESS_EQUAL": LessEqual,
    "LOGICAL_AND": And,
    "LOGICAL_OR": Or,
    "NOT_EQUAL": NotEqual,
}


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    return node.add(_BINARY[node.type], node[0], node[1])


@imports("LOGICAL_NOT")
def logical_not(node: Node) -> Operand:
    return node.add(Not, node[0])


@imports("SELECT_V2")
def select_v2(node: Node) -> Operand:
    return node.add(Where, node[0], node[1], node[2])


@imports("SELECT")
def select(node: Node) -> Operand:
    """Import a choice without broadcasting; a list of conditions is for the entries of axis 0."""
    condition, rank = node[0], rank_of(node[1])
    if len(shape_of(condition)) == 1 and rank > 1:
        condition = node.add(Unsqueeze, condition, axes=tuple(range(1, rank)))
    return node.add(Where, condition, node[1], node[2])


@imports("WHERE")
def where(node: Node) -> Operand:
    """Import the indices of true elements, a row each."""
    return node.add(Transpose, node.add(NonZero, node[0]), (1, 0))
