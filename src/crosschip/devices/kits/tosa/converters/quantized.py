"""Quantized operators on integers: sums in int32, rescaled to the output.

Operators on one tensor of bytes are tables of their results for all bytes.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.convolution import (
    channels_last,
    convolve,
    fitted,
    image_of,
    result_of,
)
from crosschip.devices.kits.tosa.converters.matrix import multiply
from crosschip.devices.kits.tosa.converters.table import quantized, shape_of
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.devices.kits.tosa.integers import BYTE_TYPES, BYTES, bytes_of, scales_of, steps
from crosschip.devices.kits.tosa.rescaling import fit_sum, rescale, rescaled_sum
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.hal.converters import Scheme
from crosschip.ir import ElementType, Model, Operand, TensorType
from crosschip.ops.standard import activation, arithmetic, unary
from crosschip.ops.standard.convolution import Conv, Conv2D, Conv3D
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.reduction import ReduceMean, ReduceSum, Reduction

_WEIGHTS = Scheme(BYTE_TYPES, axis=0)
_BIAS = Scheme(frozenset({ElementType.INT32}), axis=0)
_UNIT = {"input": BYTES, "output": BYTES}
_PAIR = {"input0": BYTES, "input1": BYTES, "output": BYTES}
_WEIGHTED = {"input": BYTES, "bias": _BIAS, "output": BYTES}


def _ratios(op: arithmetic.Add | arithmetic.Sub) -> list[Fraction]:
    (first,), (second,), (scale,) = map(scales_of, (op.input0, op.input1, op.outputs[0]))
    return [first / scale, (second if isinstance(op, arithmetic.Add) else -second) / scale]


@quantized(arithmetic.Add, arithmetic.Sub, form=_PAIR, limit=lambda op: fit_sum(_ratios(op)))
def add(g: Graph, op: arithmetic.Add | arithmetic.Sub) -> Value:
    terms = zip(g.aligned(steps(g, op.input0), steps(g, op.input1)), _ratios(op), strict=True)
    return rescaled_sum(g, list(terms), op.outputs[0], op.fuse_code)


@quantized(arithmetic.Mul, form=_PAIR)
def mul(g: Graph, op: arithmetic.Mul) -> Value:
    product = g.product(*g.aligned(steps(g, op.input0), steps(g, op.input1)))
    (first,), (second,) = scales_of(op.input0), scales_of(op.input1)
    (scale,) = scales_of(op.outputs[0])
    return rescale(g, product, [first * second / scale], op.outputs[0], op.fuse_code)


@quantized(Conv2D, Conv3D, form={**_WEIGHTED, "filter": _WEIGHTS})
def conv(g: Graph, op: Conv) -> Value:
    (image, zero), (filters, filter_zero) = bytes_of(g, op.input), bytes_of(g, op.filter)
    image, sizes, attributes = fitted(g, op, image_of(g, image))
    weights = channels_last(g, filters)
    bias = g.zero(DType.INT32) if op.bias is None else g[op.bias]
    sums = convolve(g, image, weights, bias, op.group, sizes, attributes, (zero, filter_zero))
    return result_of(g, _rescale_products(g, op, sums, op.filter))


def _rescale_products(g: Graph, op: Any, sums: Value, weights: Operand) -> Value:
    (first,), (scale,) = scales_of(op.inputs[0]), scales_of(op.outputs[0])
    ratios = [first * second / scale for second in scales_of(weights)]
    return rescale(g, sums, ratios, op.outputs[0], op.fused)


@quantized(FullyConnected, form={**_WEIGHTED, "weight": _WEIGHTS})
def fully_connected(g: Graph, op: FullyConnected) -> Value:
    (rows, zero), (weights, weight_zero) = bytes_of(g, op.input), bytes_of(g, op.weight)
    units, size = shape_of(op.weight)
    count = prod(shape_of(op.input)) // size
    image = g.reshape(rows, (count, 1, 1, size))
    filters = g.reshape(weights, (units, 1, 1, size))
    bias = g.zero(DType.INT32) if op.bias is None else g[op.bias]
    attributes = {"pad": [0] * 4, "stride": [1, 1], "dilation": [1, 1]}
    sums = convolve(g, image, filters, bias, 1, (count, 1, 1), attributes, (zero, weight_zero))
    return _rescale_products(g, op, sums, op.weight)


@quantized(MatMul, form={"x": BYTES, "y": BYTES, "output": BYTES})
def mat_mul(g: Graph, op: MatMul) -> Value:
    (x, x_zero), (y, y_zero) = bytes_of(g, op.x), bytes_of(g, op.y)
    return _rescale_products(g, op, multiply(g, op, x, y, (x_zero, y_zero)), op.y)


@quantized(ReduceSum, ReduceMean, form=_UNIT)
def reduce_sum(g: Graph, op: Reduction) -> Value:
    value = steps(g, op.input)
    axes = sorted(axis % value.rank for axis in op.axes) or list(range(value.rank))
    total = g.reduce(Op.REDUCE_SUM, value, axes)
    count = prod(value.shape[axis] for axis in axes) if isinstance(op, ReduceMean) else 1
    (first,), (scale,) = scales_of(op.input), scales_of(op.outputs[0])
    return rescale(g, total, [first / scale / count], op.outputs[0])


_FUNCTIONS = (
    *(unary.Abs, unary.Neg, unary.Sign, unary.Square, unary.Sqrt, unary.Rsqrt, unary.Reciprocal),
    *(unary.Exp, unary.Log, unary.Erf, unary.Floor, unary.Ceil, unary.Round, unary.Sin, unary.Cos),
    *(unary.Tan, unary.Asin, unary.Acos, unary.Atan, unary.Sinh, unary.Cosh),
    *(unary.Asinh, unary.Acosh, unary.Atanh, arithmetic.Clip),
    *(activation.Relu, activation.Relu6, activation.LeakyRelu, activation.Elu, activation.Selu),
    *(activation.Celu, activation.Gelu, activation.HardSigmoid, activation.HardSwish),
    *(activation.Mish, activation.Sigmoid, activation.Softplus, activation.Softsign),
    *(activation.Swish, activation.Tanh, activation.ThresholdedRelu, activation.Shrink),
)


@quantized(*_FUNCTIONS, form=_UNIT)
def function(g: Graph, op: Any) -> Value:
    """Look the result up in a table of those for all bytes, computed by the reference."""
    value, _ = bytes_of(g, op.input)
    results = _results_of_bytes(op)
    signed = op.outputs[0].type.element_type is ElementType.INT8
    entries = results if signed else results.astype(np.int16) - 128
    table = g.constant(entries.astype(np.int8), DType.INT8)
    output = g.add(Op.TABLE, (value, table), DType.INT8, value.shape)
    if signed:
        return output
    wide = g.cast(output, DType.INT32)
    return g.sum(wide, g.number(128, wide))


def _results_of_bytes(op: Any) -> Any:
    """Return the operation's results for all bytes, in ascending order."""
    from crosschip.devices.reference import ReferenceProgram

    (source,) = (operand for slot, operand in op.filled() if not slot.parameter)
    type_ = source.type
    limits = np.iinfo(type_.element_type.dtype)
    all_bytes = np.arange(limits.min, limits.max + 1).astype(type_.element_type.dtype)
    entry = Operand("byte", TensorType(type_.element_type, (256,), type_.quantization))
    output = op.outputs[0].type
    result = Operand("result", TensorType(output.element_type, (256,), output.quantization))
    inputs = tuple(entry if operand is source else operand for operand in op.inputs)
    alone = op.with_inputs(inputs, (result,))
    model = Model("table", {"byte": entry}, [alone], {"result": result})
    (results,) = ReferenceProgram(model).run([all_bytes])
    return np.asarray(results)
