"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    accepts,
    converts,
    keep_nan,
    same,
)
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal
from crosschip.ir import Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import activation

converts(activation.Sigmoid)(same(ops.sigmoid))
converts(activation.Tanh)(same(ops.tanh))
converts(activation.Softsign)(same(ops.softsign))
converts(activation.Mish)(same(ops.mish))


_WEIGHTED = {"Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul"}
_FUSING = _WEIGHTED | {"GroupConvolutionBackpropData", "Add", "Multiply"}
_MOVED = {"Reshape", "Squeeze", "Unsqueeze", "Transpose"}


def fuses(value: Value) -> bool:
    """Return whether OpenVINO may fuse an activation into the operation that computes its input."""
    node = value if isinstance(value, Node) else value.get_node()
    return node.get_type_name() in _FUSING or _is_matrix_of_product(node)


def _is_matrix_of_product(node: Node) -> bool:
    """Return whether a node removes the axis that `with_another_axis` added to a product."""
    nodes = [node]
    for _ in range(3):
        if nodes[-1].get_input_size() == 0:
            break
        nodes.append(nodes[-1].input_value(0).get_node())
    names = [each.get_type_name() for each in nodes if each.get_type_name() != "Add"]
    return names[:3] == ["Squeeze", "MatMul", "Unsqueeze"]


def _value_before_moves(value: Value) -> Value:
    """Return the value before reshapes and transpositions, which activations move past."""
    node = value if isinstance(value, Node) else value.get_node()
    return _value_before_moves(node.input_value(0)) if node.get_type_name() in _MOVED else value


@converts(activation.Relu)
def relu(g: Graph, op: activation.Relu) -> Node:
    value, zero = g[op.input], g.number(0, op.input)
    if fuses(value):
        return ops.relu(value)
    # Quirks `maximum-of-nan` and `folded-maximum-of-nan`: the order that keeps NaN differs.
    constant = op.input.value is not None
    return ops.maximum(value, zero) if constant else ops.maximum(zero, value)


@converts(activation.Relu6)
def relu6(g: Graph, op: activation.Relu6) -> Node:
    return bounded(g, op.input, 0, 6)


def bounded(g: Graph, operand: Operand, minimum: float, high: float) -> Node:
    """Clamp an operand; NaN is kept unless OpenVINO fuses the clamp into its input."""
    value = g[operand]
    result = ops.clamp(value, minimum, high)
    is_real = operand.type.element_type in FLOAT_TYPES
    return keep_nan(value, result) if is_real and not fuses(value) else result


@converts(activation.PRelu)
def prelu(g: Graph, op: activation.PRelu) -> Node:
    return ops.prelu(g[op.input], g[op.slope])


def _check_numbers(*slots: str) -> Callable[[Operator], Refusal | None]:
    """Return the rule that parameters are finite and not 0, as OpenVINO expects."""

    def limit(op: Operator) -> Refusal | None:
        for slot in slots:
            number: float = getattr(op, slot)
            if number == 0 or not isfinite(number):
                return Refusal(slot, f"is {number:g}")
        return None

    return limit


def _check_elu(op: activation.Elu) -> Refusal | None:
    return None if isfinite(op.alpha) else Refusal("alpha", f"is {op.alpha:g}")


# Quirk `leaky-relu-of-infinity`.
@converts(activation.LeakyRelu, limit=_check_numbers("alpha"))
def leaky_relu(g: Graph, op: activation.LeakyRelu) -> Node:
    return ops.prelu(g[op.input], g.number(op.alpha, op.input))


@converts(activation.HardSigmoid, limit=_check_numbers("alpha", "beta"))
def hard_sigmoid(g: Graph, op: activation.HardSigmoid) -> Node:
    return ops.hard_sigmoid(g[op.input], g.number(op.alpha, op.input), g.number(op.beta, op.input))


@converts(activation.HardSwish, limit=_check_numbers("alpha", "beta"))
def hard_swish(g: Graph, op: activation.HardSwish) -> Node:
    return ops.hswish(g[op.input])


@converts(activation.Swish)
def swish(g: Graph, op: activation.Swish) -> Node:
    return ops.swish(g[op.input], g.number(1, op.input))


@converts(activation.Gelu)
def gelu(g: Graph, op: activation.Gelu) -> Node:
    value = g[op.input]
    result = ops.gelu(value, "tanh" if op.approximate else "erf")
    if fuses(_value_before_moves(value)):
        return result
    # Quirk `gelu-of-infinity`.
    return ops.select(ops.equal(value, g.number(np.inf, op.input)), value, result)


def _check_softplus(op: activation.Softplus) -> Refusal | None:
    if op.beta != 1:
        return Refusal("beta", f"{op.beta} is not 1")
    # From 20 on, adding 1 to the power does not change a float32.
    return None if op.threshold >= 20 else Refusal("threshold", f"{op.threshold} is less than 20")


accepts(activation.Softplus, limit=_check_softplus)


@converts(activation.Elu, limit=_check_elu)
def elu(g: Graph, op: activation.Elu) -> Node:
    return ops.elu(g[op.input], op.alpha)


@converts(activation.Selu, limit=_check_numbers("alpha", "gamma"))
def selu(g: Graph, op: activation.Selu) -> Node:
    return ops.selu(g[op.input], g.number(op.alpha, op.input), g.number(op.gamma, op.input))


@converts(activation.Softmax)
def softmax(g: Graph, op: activation.Softmax) -> Node:
    return ops.softmax(g[op.input], op.axis)


@converts(activation.LogSoftmax)
def log_softmax(g: Graph, op: activation.LogSoftmax) -> Node:
    return ops.log_softmax(g[op.input], op.axis)
