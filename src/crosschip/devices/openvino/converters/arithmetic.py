"""Element by element functions, matrix products, normalizations and reductions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.limits import known_weight, one_type
from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    MOVABLE,
    converts,
    rank_of,
    sizes_only,
)
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES
from crosschip.ops import activation, elementwise, matrix, normalization, reduction
from crosschip.ops.operator import Operator

_INTEGERS = INDICES | {ElementType.INT16, ElementType.UINT16}

_OPENVINO: dict[type[Operator], Callable[..., Node]] = {
    activation.Relu: ops.relu,
    activation.Sigmoid: ops.sigmoid,
    activation.Tanh: ops.tanh,
    elementwise.Sqrt: ops.sqrt,
    elementwise.Exp: ops.exp,
    elementwise.Add: ops.add,
    elementwise.Sub: ops.subtract,
    elementwise.Mul: ops.multiply,
    elementwise.Div: ops.divide,
    elementwise.Pow: ops.power,
    elementwise.Max: ops.maximum,
    elementwise.Min: ops.minimum,
    reduction.ReduceMean: ops.reduce_mean,
    reduction.ReduceSum: ops.reduce_sum,
    reduction.ReduceMax: ops.reduce_max,
}


def unary(g: Graph, op: activation.Activation | elementwise.Sqrt | elementwise.Exp) -> Node:
    return _OPENVINO[type(op)](g[op.input])


converts(activation.Relu, activation.Sigmoid, activation.Tanh)(unary)
converts(elementwise.Sqrt)(unary)
converts(elementwise.Exp)(unary)


def binary(g: Graph, op: elementwise.Binary) -> Node:
    a, b = _with_axes_of(g, op.input0, op.input1), _with_axes_of(g, op.input1, op.input0)
    return _OPENVINO[type(op)](a, b)


converts(elementwise.Div, elementwise.Pow)(binary)
converts(
    *(elementwise.Add, elementwise.Sub, elementwise.Mul, elementwise.Max, elementwise.Min),
    types=FLOAT_TYPES | _INTEGERS,
    limit=sizes_only,
)(binary)


def _with_axes_of(g: Graph, operand: Operand, other: Operand) -> Value:
    """An operand with all the axes that a constant adds, which OpenVINO can forget in fusing it."""
    missing = rank_of(other) - rank_of(operand)
    if missing > 0 and other.is_constant and not operand.is_constant:
        return ops.unsqueeze(g[operand], g.int64(range(missing)))
    return g[operand]


@converts(elementwise.Assign, types=MOVABLE, limit=sizes_only)
def assign(g: Graph, op: elementwise.Assign) -> Value:
    return g[op.input]


@converts(activation.LeakyRelu)
def leaky_relu(g: Graph, op: activation.LeakyRelu) -> Node:
    return ops.prelu(g[op.input], g.number(op.alpha, op.input))


@converts(activation.Relu6)
def relu6(g: Graph, op: activation.Relu6) -> Node:
    return ops.clamp(g[op.input], 0, 6)


def _bounds(op: elementwise.Clip) -> str | None:
    return sizes_only(op) if op.min <= op.max else f"min: {op.min} is above max {op.max}"


@converts(elementwise.Clip, types=FLOAT_TYPES | _INTEGERS, limit=_bounds)
def clip(g: Graph, op: elementwise.Clip) -> Node:
    low, high = op.min, op.max
    if op.input.type.element_type not in FLOAT_TYPES:
        low, high = np.trunc(low), np.trunc(high)
    return ops.clamp(g[op.input], low, high)


@converts(activation.HardSigmoid)
def hard_sigmoid(g: Graph, op: activation.HardSigmoid) -> Node:
    alpha, beta = g.number(op.alpha, op.input), g.number(op.beta, op.input)
    return ops.hard_sigmoid(g[op.input], alpha, beta)


@converts(activation.HardSwish)
def hard_swish(g: Graph, op: activation.HardSwish) -> Node:
    if np.float32(op.alpha) == np.float32(1 / 6) and op.beta == 0.5:
        return ops.hswish(g[op.input])
    alpha, beta = g.number(op.alpha, op.input), g.number(op.beta, op.input)
    return ops.multiply(g[op.input], ops.hard_sigmoid(g[op.input], alpha, beta))


@converts(activation.Swish)
def swish(g: Graph, op: activation.Swish) -> Node:
    return ops.swish(g[op.input], g.number(1, op.input))


@converts(activation.Softmax)
def softmax(g: Graph, op: activation.Softmax) -> Node:
    return ops.softmax(g[op.input], op.axis)


def _batches(op: matrix.MatMul) -> str | None:
    """OpenVINO does not stretch a batch that is known only at run time to that of a constant."""
    for slot, known, other in (("y", op.y, op.x), ("x", op.x, op.y)):
        if known.value is not None and other.type.static_shape is None:
            wanted, sizes = known.value.shape[-3::-1], (other.type.shape or ())[-3::-1]
            if any(a not in (1, b) for a, b in zip_longest(wanted, sizes, fillvalue=1)):
                return f"{slot}: a constant to whose batch the other one may have to be stretched"
    return None


@converts(matrix.MatMul, limit=_batches)
def matmul(g: Graph, op: matrix.MatMul) -> Node:
    return ops.matmul(g[op.x], g[op.y], op.transpose_x, op.transpose_y)


@converts(matrix.FullyConnected, limit=known_weight)
def fully_connected(g: Graph, op: matrix.FullyConnected) -> Node:
    rows = g[op.input]
    if rank_of(op.input) > 2:
        _, size = op.weight.type.static_shape or ()
        rows = g.reshaped(op.input, [-1, size])
    product = ops.matmul(rows, g[op.weight], False, True)
    return ops.add(product, g[op.bias]) if op.bias else product


@converts(normalization.BatchNormalization, limit=one_type)
def batch_normalization(g: Graph, op: normalization.BatchNormalization) -> Node:
    statistics = [g[operand] for operand in (op.scale, op.bias, op.mean, op.variance)]
    return ops.batch_norm_inference(g[op.input], *statistics, op.epsilon)


@converts(normalization.LayerNormalization, limit=one_type)
def layer_normalization(g: Graph, op: normalization.LayerNormalization) -> Node:
    rank = rank_of(op.input)
    axes = g.int64(range(op.begin_norm_axis % rank, rank))
    normal = ops.mvn(g[op.input], axes, True, op.epsilon, "inside_sqrt")
    return ops.add(ops.multiply(normal, g[op.scale]), g[op.bias])


@converts(reduction.ReduceMean, reduction.ReduceSum, reduction.ReduceMax)
def reduce(g: Graph, op: reduction.Reduction) -> Node:
    axes = op.axes or range(rank_of(op.input))
    return _OPENVINO[type(op)](g[op.input], g.int64(axes), op.keepdim)
