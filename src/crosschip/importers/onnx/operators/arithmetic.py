"""Elementwise arithmetic."""

from __future__ import annotations

from functools import reduce

import numpy as np

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import ElementType, Operand, UnsupportedError
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mod, Mul, Pow, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, ShapeOf

_BINARY: dict[str, type[Operator]] = {"Add": Add, "Sub": Sub, "Mul": Mul, "Div": Div}
_VARIADIC: dict[str, type[Operator]] = {"Max": Max, "Min": Min, "Sum": Add, "Mean": Add}


@imports(*_BINARY)
def binary(node: Node) -> Operand:
    return node.add(_BINARY[node.type], node[0], node[1])


@imports(*_VARIADIC)
def variadic(node: Node) -> Operand:
    operator, inputs = _VARIADIC[node.type], node.all_inputs()
    result = reduce(lambda total, other: node.add(operator, total, other), inputs)
    return node.add(Div, result, len(inputs)) if node.type == "Mean" else result


@imports("Mod")
def modulo(node: Node) -> Operand:
    return node.add(Mod, node[0], node[1], node.flag("fmod"))


@imports("Pow")
def power(node: Node) -> Operand:
    """Import Pow; since opset 12 the exponent's type may differ from that of base and output."""
    base, exponent = node[0], node[1]
    base_type, exponent_type = base.type.element_type, exponent.type.element_type
    if base_type is exponent_type:
        return node.add(Pow, base, exponent)
    if base_type in FLOATS:
        return node.add(Pow, base, node.add(Cast, exponent, base_type))
    real = [node.add(Cast, operand, ElementType.FLOAT64) for operand in (base, exponent)]
    return node.add(Cast, node.add(Pow, *real), base_type)


@imports("Clip")
def clip(node: Node) -> Operand:
    """Import Clip; bounds are attributes before opset 11. The upper bound takes precedence."""
    if node.opset < 11:
        low, high = node.real("min", -np.inf), node.real("max", np.inf)
        return node.add(Clip, node[0], low, high)
    bounds = {Max: node.optional(1), Min: node.optional(2)}
    if node[0].type.element_type in FLOATS and all(
        bound is None or bound.value is not None for bound in bounds.values()
    ):
        return node.add(Clip, node[0], bounds[Max], bounds[Min])
    present_bounds = [(operator, bound) for operator, bound in bounds.items() if bound is not None]
    return reduce(lambda result, pair: node.add(pair[0], result, pair[1]), present_bounds, node[0])


@imports("Dropout")
def dropout(node: Node) -> list[Operand]:
    """Import Dropout as identity; the second output, the mask, is all true."""
    node.ignore("seed")
    ratio = node.real("ratio") if node.opset < 12 else _ratio(node)
    training = node.optional(2)
    if training is not None and (training.value is None or training.value.any()) and ratio != 0:
        node.scope.note_training()
        raise UnsupportedError(
            "is in training mode and drops elements at random; call model.eval() before exporting"
        )
    results = [node[0]]
    if len(node.outputs) > 1 and node.outputs[1]:
        results.append(node.add(Fill, node.add(ShapeOf, node[0]), np.ones(1, np.bool_)))
    return results


def _ratio(node: Node) -> float | None:
    """Return the dropped fraction; `None` if it is not constant."""
    ratio = node.optional(1)
    if ratio is None:
        return 0.5
    return None if ratio.value is None else float(ratio.value.item())


@imports("com.microsoft.BiasAdd")
def bias_add(node: Node) -> Operand:
    """Add a bias and a skip connection."""
    return node.add(Add, node.add(Add, node[0], node[1]), node[2])
