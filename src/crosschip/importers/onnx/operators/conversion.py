"""Conversions of element types, and identity."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.importers.onnx.tensors import element_type
from crosschip.ir import ElementType, Operand, UnsupportedError
from crosschip.ir.types import NARROW_FLOATS
from crosschip.ops.numerics.casting import PowerRounding
from crosschip.ops.standard.conversion import BitCast, Cast


@imports("Cast", "CastLike")
def cast(node: Node) -> Operand:
    """Import Cast; `saturate` and `round_mode` affect only floats of up to eight bits."""
    like = node[1].type.element_type if node.type == "CastLike" else None
    target = like or element_type(node.integer("to"))
    if target is ElementType.STRING:
        raise UnsupportedError("no standard operator makes strings")
    saturate = node.flag("saturate")
    rounding = node.text("round_mode").upper()
    only("round_mode", rounding, *PowerRounding.__members__)
    return add_cast(node, node[0], target, saturate=saturate, rounding=PowerRounding[rounding])


def add_cast(
    node: Node,
    operand: Operand,
    target: ElementType,
    *,
    saturate: bool = True,
    rounding: PowerRounding = PowerRounding.UP,
) -> Operand:
    """Convert an operand to an element type."""
    if operand.type.element_type is target:
        return operand
    if target not in NARROW_FLOATS:
        return node.add(Cast, operand, target)
    return node.add(Cast, operand, target, saturate=saturate, round_mode=rounding)


@imports("Identity")
def identity(node: Node) -> Operand:
    return node[0]


@imports("BitCast")
def bit_cast(node: Node) -> Operand:
    return node.add(BitCast, node[0], element_type(node.integer("to")))
