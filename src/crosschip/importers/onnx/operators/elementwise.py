"""Arithmetic, element by element."""

from __future__ import annotations

from functools import reduce

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import FLOATS
from crosschip.ops.conversion import Cast
from crosschip.ops.elementwise import Add, Clip, Div, Exp, Max, Min, Mul, Pow, Sqrt, Sub
from crosschip.ops.operator import Operator

_BINARY: dict[str, type[Operator]] = {"Add": Add, "Sub": Sub, "Mul": Mul, "Div": Div}
_UNARY: dict[str, type[Operator]] = {"Sqrt": Sqrt, "Exp": Exp}
_VARIADIC: dict[str, type[Operator]] = {"Max": Max, "Min": Min}


@imports(*_UNARY)
def unary(node: Node) -> Operand:
    return node.add(_UNARY[node.type], node[0])


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    return node.add(_BINARY[node.type], node[0], node[1])


@imports(*_VARIADIC)
def variadic(node: Node) -> Operand:
    operator = _VARIADIC[node.type]
    return reduce(lambda found, other: node.add(operator, found, other), node.all_inputs())


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
    """The bounds are attributes before opset 11, then inputs."""
    if node.opset < 11:
        low, high = node.real("min", -np.inf), node.real("max", np.inf)
        return node.add(Clip, node[0], low, high)
    bounds = {Max: node.optional(1), Min: node.optional(2)}
    if node[0].type.element_type in FLOATS:
        return node.add(Clip, node[0], bounds[Max], bounds[Min])
    given = [(operator, bound) for operator, bound in bounds.items() if bound is not None]
    return reduce(lambda found, pair: node.add(pair[0], found, pair[1]), given, node[0])
