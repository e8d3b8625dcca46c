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
from crosschip.devices.kits.tosa.rescaling import clamp_to_fuse, fit_sum, rescale, rescaled_sum
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.hal.converters import Scheme
from crosschip.ir import ElementType, Model, Operand, TensorType
from crosschip.ops.standard import activation, arithmetic, unary
from crosschip.ops.standard.convolution import Conv, Conv2D, Conv2DTranspose, Conv3D
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.quantization import Quantize
from crosschip.ops.standard.reduction import ReduceMean, ReduceSum, Reduction

_WEIGHTS = Scheme(BYTE_TYPES, axis=0)
_BIAS = Scheme(frozenset({ElementType.INT32}), axis=0)
UNIT = {"input": BYTES, "output": BYTES}
PAIR = {"input0": BYTES, "input1": BYTES, "output": BYTES}
MULTIPLIED = {"x": BYTES, "y": BYTES, "output": BYTES}
FILTERED = {"input": BYTES, "filter": _WEIGHTS, "bias": _BIAS, "output": BYTES}
LAYERED = {"input": BYTES, "weight": _WEIGHTS, "bias": _BIAS, "output": BYTES}


def _ratios(op: arithmetic.Add | arithmetic.Sub) -> list[Fraction]:
    (first,), (second,), (scale,) = map(scales_of, (op.input0, op.input1, op.outputs[0]))
    return [first / scale, (second if isinstance(op, arithmetic.Add) else -second) / scale]


@quantized(arithmetic.Add, arithmetic.Sub, form=PAIR, limit=lambda op: fit_sum(_ratios(op)))
def add(g: Graph, op: arithmetic.Add | arithmetic.Sub) -> Value:
    terms = zip(g.aligned(steps(g, op.input0), steps(g, op.input1)), _ratios(op), strict=True)
    return rescaled_sum(g, list(terms), op.outputs[0], op.fuse_code)


@quantized(arithmetic.Mul, form=PAIR)
def mul(g: Graph, op: arithmetic.Mul) -> Value:
    product = g.product(*g.aligned(steps(g, op.input0), steps(g, op.input1)))
    (first,), (second,) = scales_of(op.input0), scales_of(op.input1)
    (scale,) = scales_of(op.outputs[0])
    return rescale(g, product, [first * second / scale], op.outputs[0], op.fuse_code)


_MAX_SUM = 2**31
_MAX_PRODUCT = 255 * 255


def sums_fit(op: Any) -> bool:
    """Return whether sums of products of bytes, with the bias, are certainly int32."""
    if isinstance(op, Conv):
        terms = prod(shape_of(op.filter)[1:])
    elif isinstance(op, Conv2DTranspose):
        terms = prod(shape_of(op.filter)) // shape_of(op.filter)[1] // op.group
    elif isinstance(op, FullyConnected):
        terms = shape_of(op.weight)[1]
    else:
        shape = shape_of(op.x)
        terms = shape[-2 if op.transpose_x and len(shape) > 1 else -1]
    bias = op.operand("bias")
    largest = 0
    if bias is not None:
        if bias.value is None:
            return False
        largest = int(np.abs(bias.value.astype(np.int64)).max(initial=0))
    return terms * _MAX_PRODUCT + largest < _MAX_SUM


@quantized(Conv2D, Conv3D, limit=sums_fit, form=FILTERED)
def conv(g: Graph, op: Conv) -> Value:
    return result_of(g, _rescale_products(g, op, convolution_sums(g, op), op.filter))


def convolution_sums(g: Graph, op: Conv) -> Value:
    """Return the int32 sums of products with filters, channels last."""
    (image, zero), (filters, filter_zero) = bytes_of(g, op.input), bytes_of(g, op.filter)
    image, sizes, attributes = fitted(g, op, image_of(g, image))
    weights = channels_last(g, filters)
    bias = g.zero(DType.INT32) if op.bias is None else g[op.bias]
    return convolve(g, image, weights, bias, op.group, sizes, attributes, (zero, filter_zero))


def _rescale_products(g: Graph, op: Any, sums: Value, weights: Operand) -> Value:
    (first,), (scale,) = scales_of(op.inputs[0]), scales_of(op.outputs[0])
    ratios = [first * second / scale for second in scales_of(weights)]
    return rescale(g, sums, ratios, op.outputs[0], op.fused)


@quantized(FullyConnected, limit=sums_fit, form=LAYERED)
def fully_connected(g: Graph, op: FullyConnected) -> Value:
    return _rescale_products(g, op, layer_sums(g, op), op.weight)


def layer_sums(g: Graph, op: FullyConnected) -> Value:
    """Return the int32 sums of products with weights, units last."""
    (rows, zero), (weights, weight_zero) = bytes_of(g, op.input), bytes_of(g, op.weight)
    units, size = shape_of(op.weight)
    count = prod(shape_of(op.input)) // size
    image = g.reshape(rows, (count, 1, 1, size))
    filters = g.reshape(weights, (units, 1, 1, size))
    bias = g.zero(DType.INT32) if op.bias is None else g[op.bias]
    attributes = {"pad": [0] * 4, "stride": [1, 1], "dilation": [1, 1]}
    return convolve(g, image, filters, bias, 1, (count, 1, 1), attributes, (zero, weight_zero))


@quantized(MatMul, limit=sums_fit, form=MULTIPLIED)
def mat_mul(g: Graph, op: MatMul) -> Value:
    return _rescale_products(g, op, product_sums(g, op), op.y)


def product_sums(g: Graph, op: MatMul) -> Value:
    """Return the int32 sums of a product of matrices."""
    (x, x_zero), (y, y_zero) = bytes_of(g, op.x), bytes_of(g, op.y)
    return multiply(g, op, x, y, (x_zero, y_zero))


def _requantized(g: Graph, operand: Operand, output: Operand) -> Value:
    """Return integers of an operand in the quantization of an output."""
    (first,), (scale,) = scales_of(operand), scales_of(output)
    return rescale(g, steps(g, operand), [first / scale], output)


@quantized(
    Concat,
    form={"parts": BYTES, "output": BYTES},
    limit=lambda op: any(
        part.type.quantization != op.outputs[0].type.quantization for part in op.parts
    ),
)
def concat(g: Graph, op: Concat) -> Value:
    parts = [_requantized(g, part, op.outputs[0]) for part in op.parts]
    return g.concat(parts, op.axis % parts[0].rank)


@quantized(arithmetic.Max, arithmetic.Min, form=PAIR)
def extreme(g: Graph, op: arithmetic.Max | arithmetic.Min) -> Value:
    """Compare what both inputs are rounded to, since rounding keeps the order."""
    one, other = (_requantized(g, operand, op.outputs[0]) for operand in (op.input0, op.input1))
    chosen = g.binary(Op.MAXIMUM if isinstance(op, arithmetic.Max) else Op.MINIMUM, one, other)
    return clamp_to_fuse(g, chosen, op.outputs[0], op.fuse_code)


@quantized(ReduceSum, ReduceMean, form=UNIT)
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
    Quantize,
)


@quantized(*_FUNCTIONS, form=UNIT)
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
