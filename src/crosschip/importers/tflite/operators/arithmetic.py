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


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    return node.add(_BINARY[node.type], node[0], node[1])


@imports("ADD")
def add(node: Node) -> Operand:
    total = node.add(Add, node[0], node[1])
    return node.activate(total, node.options(AddOptions).fused_activation_function)


@imports("SUB")
def sub(node: Node) -> Operand:
    difference = node.add(Sub, node[0], node[1])
    return node.activate(difference, node.options(SubOptions).fused_activation_function)


@imports("MUL")
def mul(node: Node) -> Operand:
    product = node.add(Mul, node[0], node[1])
    return node.activate(product, node.options(MulOptions).fused_activation_function)


@imports("DIV")
def div(node: Node) -> Operand:
    quotient = node.add(Div, node[0], node[1])
    return node.activate(quotient, node.options(DivOptions).fused_activation_function)


@imports("ADD_N")
def add_n(node: Node) -> Operand:
    return node.add(Sum, node.all_inputs())
