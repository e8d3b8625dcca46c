"""Arithmetic of tensors, which are broadcast."""

from __future__ import annotations

import math

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import (
    AddOptions,
    DivOptions,
    MulOptions,
    SubOptions,
)
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, Operand
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import (
    Add,
    Div,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
    Sum,
)
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.logical import And, Or, Where
from crosschip.ops.standard.unary import Abs, Atan, IsInf, Neg

_BINARY: dict[str, type[Operator]] = {
    "FLOOR_DIV": FloorDiv,
    "FLOOR_MOD": Mod,
    "MAXIMUM": Max,
    "MINIMUM": Min,
    "POW": Pow,
    "SQUARED_DIFFERENCE": SquaredDifference,
}

_FUSED: dict[
    str, tuple[type[Operator], type[AddOptions | SubOptions | MulOptions | DivOptions]]
] = {
    "ADD": (Add, AddOptions),
    "DIV": (Div, DivOptions),
    "MUL": (Mul, MulOptions),
    "SUB": (Sub, SubOptions),
}
"""Operators with an activation in their options."""


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    return node.add(_BINARY[node.type], node[0], node[1])


@imports(*_FUSED)
def fused(node: Node) -> Operand:
    """Import an operator with an activation in its options."""
    operator, options = _FUSED[node.type]
    result = node.add(operator, node[0], node[1])
    return node.activate(result, node.options(options).fused_activation_function)


@imports("ADD_N")
def add_n(node: Node) -> Operand:
    return node.add(Sum, node.all_inputs())


@imports("ATAN2")
def atan2(node: Node) -> Operand:
    """Import the angle of the point (x, y), of magnitudes first; signs of zeros count."""
    kind = node[0].type.element_type
    wide = ElementType.FLOAT64 if kind is ElementType.FLOAT64 else ElementType.FLOAT32
    zero, one, half_turn = (np.array(number, wide.dtype) for number in (0, 1, math.pi))
    negative, magnitudes = [], []
    for operand in (node.add(Cast, each, wide) for each in (node[0], node[1])):
        inverse = node.add(Div, one, operand)
        below = node.add(Less, operand, zero), node.add(Less, inverse, zero)
        negative.append(node.add(Or, *below))
        magnitudes.append(node.add(Abs, operand))
    y, x = magnitudes
    # Of two zeros the quotient is that of 0 and 1, of two infinities that of 1 and 1.
    zeros = node.add(Equal, node.add(Add, y, x), zero)
    infinities = node.add(And, node.add(IsInf, y), node.add(IsInf, x))
    y = node.add(Where, infinities, one, y)
    x = node.add(Where, node.add(Or, zeros, infinities), one, x)
    angle = node.add(Atan, node.add(Div, y, x))
    angle = node.add(Where, negative[1], node.add(Sub, half_turn, angle), angle)
    return node.add(Cast, node.add(Where, negative[0], node.add(Neg, angle), angle), kind)
