"""Element by element functions, matrix products, normalizations and reductions."""

from __future__ import annotations

import numpy as np

from crosschip.devices.limits import known_weight, one_type
from crosschip.devices.onnxruntime.converters.table import (
    FLOAT_TYPES,
    MOVABLE,
    NARROW_FLOATS,
    converts,
    needs_rank,
    rank_of,
)
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES, INTEGERS
from crosschip.ops import activation, elementwise, matrix, normalization, reduction
from crosschip.ops.operator import Operator

_BYTES = {ElementType.INT8, ElementType.UINT8}
_COMPARABLE = (FLOAT_TYPES | INTEGERS) - {ElementType.INT16, ElementType.UINT16}

_ONNX: dict[type[Operator], str] = {
    activation.Relu: "Relu",
    activation.Sigmoid: "Sigmoid",
    activation.Tanh: "Tanh",
    elementwise.Sqrt: "Sqrt",
    elementwise.Exp: "Exp",
    elementwise.Assign: "Identity",
    elementwise.Add: "Add",
    elementwise.Sub: "Sub",
    elementwise.Mul: "Mul",
    elementwise.Div: "Div",
    elementwise.Pow: "Pow",
    elementwise.Max: "Max",
    elementwise.Min: "Min",
    reduction.ReduceMean: "ReduceMean",
    reduction.ReduceSum: "ReduceSum",
    reduction.ReduceMax: "ReduceMax",
}


def same(g: Graph, op: Operator) -> str:
    """The ONNX operator that does the same."""
    return g.add(_ONNX[type(op)], *(g[o] for slot, o in op.filled() if not slot.parameter))


converts(activation.Relu, activation.Sigmoid, activation.Tanh)(same)
converts(elementwise.Sqrt, elementwise.Exp, elementwise.Pow)(same)
converts(elementwise.Add, elementwise.Sub, elementwise.Mul, types=FLOAT_TYPES | INTEGERS)(same)
converts(elementwise.Max, elementwise.Min, types=_COMPARABLE)(same)
converts(elementwise.Assign, types=MOVABLE)(same)


def _traps(op: elementwise.Div) -> str | None:
    """The processor traps on an integer division by 0, and on that of the lowest one by -1."""
    divisor = op.input1.value
    if op.input1.type.element_type in FLOAT_TYPES:
        return None
    if divisor is None or np.isin(divisor, (0, -1)).any():
        return "input1: an integer divisor must be constant, and neither 0 nor -1"
    return None


converts(elementwise.Div, types=FLOAT_TYPES | INTEGERS, limit=_traps)(same)


@converts(activation.LeakyRelu, types=NARROW_FLOATS)
def leaky_relu(g: Graph, op: activation.LeakyRelu) -> str:
    return g.add("LeakyRelu", g[op.input], alpha=op.alpha)


@converts(activation.Relu6)
def relu6(g: Graph, op: activation.Relu6) -> str:
    return g.add("Clip", g[op.input], g.scalar(0, op.input), g.scalar(6, op.input))


@converts(elementwise.Clip, types=_COMPARABLE)
def clip(g: Graph, op: elementwise.Clip) -> str:
    return g.add("Clip", g[op.input], _bound(g, op.min, op.input), _bound(g, op.max, op.input))


def _bound(g: Graph, bound: float, like: Operand) -> str:
    """A bound of a clip in the element type of what is clipped, as far as that type reaches."""
    if np.isinf(bound):
        return ""
    if like.type.element_type in FLOAT_TYPES:
        return g.scalar(bound, like)
    limits = np.iinfo(like.type.element_type.dtype)
    return g.scalar(min(max(int(bound), limits.min), limits.max), like)


@converts(activation.HardSigmoid, types=NARROW_FLOATS)
def hard_sigmoid(g: Graph, op: activation.HardSigmoid) -> str:
    return g.add("HardSigmoid", g[op.input], alpha=op.alpha, beta=op.beta)


@converts(activation.HardSwish, types=NARROW_FLOATS)
def hard_swish(g: Graph, op: activation.HardSwish) -> str:
    gate = g.add("HardSigmoid", g[op.input], alpha=op.alpha, beta=op.beta)
    return g.add("Mul", g[op.input], gate)


@converts(activation.Swish, types=NARROW_FLOATS)
def swish(g: Graph, op: activation.Swish) -> str:
    return g.add("Mul", g[op.input], g.add("Sigmoid", g[op.input]))


@converts(activation.Softmax)
def softmax(g: Graph, op: activation.Softmax) -> str:
    return g.add("Softmax", g[op.input], axis=op.axis)


def _transposed(op: matrix.MatMul) -> str | None:
    if not (op.transpose_x or op.transpose_y):
        return None
    unknown = needs_rank("x", op.x) or needs_rank("y", op.y)
    # ONNX Runtime fuses the transposition into a product that it then gets wrong.
    wrong = not unknown and op.transpose_x and rank_of(op.x) > rank_of(op.y) == 1
    return "transpose_x: with a y of one axis" if wrong else unknown


@converts(
    matrix.MatMul,
    types=FLOAT_TYPES | INDICES | {ElementType.UINT32, ElementType.UINT64},
    limit=_transposed,
)
def matmul(g: Graph, op: matrix.MatMul) -> str:
    x = _matrix(g, op.x, op.transpose_x)
    return g.add("MatMul", x, _matrix(g, op.y, op.transpose_y))


def _matrix(g: Graph, operand: Operand, transpose: bool) -> str:
    if not transpose or rank_of(operand) < 2:
        return g[operand]
    *batch, rows, columns = range(rank_of(operand))
    return g.add("Transpose", g[operand], perm=[*batch, columns, rows])


@converts(matrix.FullyConnected, limit=known_weight)
def fully_connected(g: Graph, op: matrix.FullyConnected) -> str:
    rows = g[op.input]
    if op.input.type.shape is None or rank_of(op.input) > 2:
        _, size = op.weight.type.static_shape or ()
        rows = g.add("Reshape", rows, g.int64([-1, size]))
    return g.add("Gemm", rows, g[op.weight], g[op.bias] if op.bias else "", transB=1)


@converts(normalization.BatchNormalization, limit=one_type)
def batch_normalization(g: Graph, op: normalization.BatchNormalization) -> str:
    statistics = [g[operand] for operand in (op.scale, op.bias, op.mean, op.variance)]
    return g.add("BatchNormalization", g[op.input], *statistics, epsilon=op.epsilon)


@converts(normalization.LayerNormalization, limit=one_type)
def layer_normalization(g: Graph, op: normalization.LayerNormalization) -> str:
    inputs = [g[operand] for operand in (op.input, op.scale, op.bias)]
    return g.add("LayerNormalization", *inputs, axis=op.begin_norm_axis, epsilon=op.epsilon)


def reduce(g: Graph, op: reduction.Reduction) -> str:
    return g.add(_ONNX[type(op)], g[op.input], g.int64(op.axes), keepdims=int(op.keepdim))


converts(reduction.ReduceMean)(reduce)
converts(reduction.ReduceSum, types=FLOAT_TYPES | {ElementType.INT32})(reduce)
converts(reduction.ReduceMax, types=FLOAT_TYPES | INDICES | _BYTES)(reduce)
