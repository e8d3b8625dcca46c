"""Arithmetic and functions of numbers, element by element."""

from __future__ import annotations

from functools import reduce

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mod, Mul, Pow, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.logical import Where
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
_BINARY: dict[str, type[Operator]] = {"Add": Add, "Sub": Sub, "Mul": Mul, "Div": Div}
_VARIADIC: dict[str, type[Operator]] = {"Max": Max, "Min": Min, "Sum": Add, "Mean": Add}


@imports(*_UNARY)
def unary(node: Node) -> Operand:
    return node.add(_UNARY[node.type], node[0])


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    return node.add(_BINARY[node.type], node[0], node[1])


@imports(*_VARIADIC)
def variadic(node: Node) -> Operand:
    operator, inputs = _VARIADIC[node.type], node.all_inputs()
    result = reduce(lambda found, other: node.add(operator, found, other), inputs)
    return node.add(Div, result, len(inputs)) if node.type == "Mean" else result


@imports("Mod")
def modulo(node: Node) -> Operand:
    return node.add(Mod, node[0], node[1], node.flag("fmod"))


@imports("Pow")
def power(node: Node) -> Operand:
    """Since opset 12 the exponent may have another type than the base, which is the output's."""
    base, exponent = node[0], node[1]
    own, other = base.type.element_type, exponent.type.element_type
    if own is other:
        return node.add(Pow, base, exponent)
    if own in FLOATS:
        return node.add(Pow, base, node.add(Cast, exponent, own))
    real = [node.add(Cast, operand, ElementType.FLOAT64) for operand in (base, exponent)]
    return node.add(Cast, node.add(Pow, *real), own)


@imports("Clip")
def clip(node: Node) -> Operand:
    """The bounds are attributes before opset 11, then inputs; the upper one wins."""
    if node.opset < 11:
        low, high = node.real("min", -np.inf), node.real("max", np.inf)
        return node.add(Clip, node[0], low, high)
    bounds = {Max: node.optional(1), Min: node.optional(2)}
    if node[0].type.element_type in FLOATS and all(
        bound is None or bound.value is not None for bound in bounds.values()
    ):
        return node.add(Clip, node[0], bounds[Max], bounds[Min])
    given = [(operator, bound) for operator, bound in bounds.items() if bound is not None]
    return reduce(lambda found, pair: node.add(pair[0], found, pair[1]), given, node[0])


@imports("Where")
def where(node: Node) -> Operand:
    return node.add(Where, node[0], node[1], node[2])
