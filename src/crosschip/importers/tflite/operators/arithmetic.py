"""Arithmetic of tensors, which are broadcast."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.options import (
    AddOptions,
    DivOptions,
    MulOptions,
    SubOptions,
)
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
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
