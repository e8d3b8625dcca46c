"""Quantized operators in the fixed-point arithmetic of TensorFlow Lite's kernels.

The integers are those of `crosschip.ops.fixed_point`. Functions of one tensor of bytes are tables,
as in `quantized`, which the reference computes in this arithmetic.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.convolution import (
    bias_of,
    convolve_transposed,
    explicit,
    image_of,
    result_of,
)
from crosschip.devices.kits.tosa.converters.pooling import window_sums
from crosschip.devices.kits.tosa.converters.quantized import (
    FILTERED,
    LAYERED,
    MULTIPLIED,
    PAIR,
    UNIT,
    convolution_sums,
    layer_sums,
    product_sums,
    sums_fit,
)
from crosschip.devices.kits.tosa.converters.table import quantized, shape_of
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.devices.kits.tosa.integers import BYTE_TYPES, BYTES, bytes_of, steps
from crosschip.devices.kits.tosa.rescaling import (
    clamp_integers,
    divide_away,
    high_product,
    offset,
    rescale_twice,
    round_away,
    shift_right,
)
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.hal.converters import Scheme
from crosschip.ir import Arithmetic, ElementType
from crosschip.ops.definition.quantized import limits
from crosschip.ops.fixed_point.activation import slope_factors, softmax_powers
from crosschip.ops.fixed_point.arithmetic import (
    addition_factors,
    multiplication_factor,
    square_factor,
)
from crosschip.ops.fixed_point.reduction import mean_factor, sum_factor
from crosschip.ops.fixed_point.rescaling import shifted_right
from crosschip.ops.fixed_point.resizing import BITS, neighbours
from crosschip.ops.fixed_point.sums import convolution_factor, layer_factors, product_factor
from crosschip.ops.standard.activation import PRelu, Softmax
from crosschip.ops.standard.arithmetic import Add, Mul, SquaredDifference, Sub
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.pooling import AveragePool2D
from crosschip.ops.standard.reduction import ReduceMean, ReduceSum
from crosschip.ops.standard.resizing import ResizeLinear

fixed_point = partial(quantized, arithmetic=Arithmetic.FIXED_POINT)


def _is_int8(op: Any) -> bool:
    return op.outputs[0].type.element_type is ElementType.INT8


@fixed_point(Conv2D, form=FILTERED, limit=sums_fit)
def conv(g: Graph, op: Conv2D) -> Value:
    sums = rescale_twice(g, convolution_sums(g, op), convolution_factor(op))
    return result_of(g, offset(g, op, sums))


@fixed_point(
    Conv2DTranspose,
    form={**FILTERED, "filter": Scheme(BYTE_TYPES, axis=1)},
    limit=lambda op: explicit(op) is None and sums_fit(op),
)
def conv_transpose(g: Graph, op: Conv2DTranspose) -> Value:
    (image, zero), (filters, filter_zero) = bytes_of(g, op.input), bytes_of(g, op.filter)
    bias = bias_of(g, op.bias, DType.INT32)
    zeros = (zero, filter_zero)
    sums = convolve_transposed(g, op, image_of(g, image), filters, bias, zeros)
    return result_of(g, offset(g, op, rescale_twice(g, sums, convolution_factor(op))))


@fixed_point(FullyConnected, form=LAYERED, limit=sums_fit)
def fully_connected(g: Graph, op: FullyConnected) -> Value:
    return offset(g, op, round_away(g, layer_sums(g, op), layer_factors(op)))


@fixed_point(MatMul, form=MULTIPLIED, limit=lambda op: _is_int8(op) and sums_fit(op))
def mat_mul(g: Graph, op: MatMul) -> Value:
    return offset(g, op, rescale_twice(g, product_sums(g, op), product_factor(op)))


@fixed_point(Add, Sub, form=PAIR)
def add(g: Graph, op: Add | Sub) -> Value:
    one, other, unit = _on_common_scale(g, op, 20)
    total = g.sum(one, other) if isinstance(op, Add) else g.difference(one, other)
    return offset(g, op, rescale_twice(g, total, unit))


@fixed_point(Mul, form=PAIR)
def mul(g: Graph, op: Mul) -> Value:
    products = g.product(*g.aligned(steps(g, op.input0), steps(g, op.input1)))
    return offset(g, op, rescale_twice(g, products, multiplication_factor(op)))


def _on_common_scale(g: Graph, op: Any, bits: int) -> tuple[Value, Value, Any]:
    """Return both inputs with some more bits on a common scale, and the factor of their sum."""
    *factors, unit = addition_factors(op, bits)
    one, other = (
        rescale_twice(g, g.product(value, g.number(1 << bits, value)), factor)
        for value, factor in zip(
            g.aligned(steps(g, op.input0), steps(g, op.input1)), factors, strict=True
        )
    )
    return one, other, unit


@fixed_point(PRelu, form={**UNIT, "slope": BYTES})
def prelu(g: Graph, op: PRelu) -> Value:
    integers, slopes = steps(g, op.input), steps(g, op.slope)
    if slopes.rank == 1:
        slopes = g.reshape(slopes, (*slopes.shape, *(1,) * max(0, integers.rank - 2)))
    integers, slopes = g.aligned(integers, slopes)
    by, slope_by = slope_factors(op)
    negative = rescale_twice(g, g.product(integers, slopes), slope_by)
    positive = rescale_twice(g, integers, by)
    is_negative = g.less(integers, g.number(0, integers))
    return offset(g, op, g.select(is_negative, negative, positive))


@fixed_point(ReduceSum, ReduceMean, form=UNIT)
def reduce_sum(g: Graph, op: ReduceSum | ReduceMean) -> Value:
    value = steps(g, op.input)
    axes = sorted(axis % value.rank for axis in op.axes) or list(range(value.rank))
    total = g.reduce(Op.REDUCE_SUM, value, axes)
    count = prod(value.shape[axis] for axis in axes)
    by = mean_factor(op, count) if isinstance(op, ReduceMean) else sum_factor(op)
    return offset(g, op, rescale_twice(g, total, by))


@fixed_point(AveragePool2D, form=UNIT)
def average_pool(g: Graph, op: AveragePool2D) -> Value:
    """Divide sums of stored integers by the pixels of windows, halves away from zero."""
    sums, population = window_sums(g, op)
    quantization = op.input.type.quantization
    zero = 0 if quantization is None or op.count_include_pad else quantization.zero_point[0]
    total = g.sum(sums, g.constant((population * zero).astype(np.int32)[None], DType.INT32))
    result: Value | None = None
    for count in np.unique(population).tolist():
        mean = divide_away(g, total, int(count) or 1)
        here = g.constant(np.asarray(population == count)[None], DType.BOOL)
        result = mean if result is None else g.select(here, mean, result)
    assert result is not None, "there is a window"
    return result_of(g, clamp_integers(g, op, result))


@fixed_point(Softmax, form=UNIT)
def softmax(g: Graph, op: Softmax) -> Value:
    """Divide powers, of which there is one for each difference of bytes, by their sum."""
    integers = g.cast(g[op.input], DType.INT32)
    axis = op.axis % integers.rank
    greatest = g.reduce(Op.REDUCE_MAX, integers, [axis])
    index = g.sum(g.difference(integers, greatest), g.number(255, integers))
    entries = softmax_powers(op, np.arange(-255, 1))
    powers, terms = (
        _look_up(g, numbers.astype(np.int32), index)
        for numbers in (entries, shifted_right(entries, 12))
    )
    total = g.reduce(Op.REDUCE_SUM, terms, [axis])
    zeros = g.unary(Op.CLZ, total)
    aligned = g.binary(Op.LOGICAL_LEFT_SHIFT, total, zeros)
    rest = g.binary(Op.BITWISE_AND, aligned, g.number(2**31 - 1, aligned))
    quotients = high_product(g, _reciprocal(g, rest), powers)
    shift = g.difference(g.number(35, zeros), zeros)
    rounded = shift_right(g, quotients, g.clamp(shift, 0, 31), rounds=True)
    is_small = g.greater(shift, g.number(31, shift))
    shares = g.select(is_small, g.number(0, rounded), rounded)
    least, _ = limits(op.outputs[0].type.element_type)
    return g.sum(g.clamp(shares, 0, 255), g.number(least, shares))


def _look_up(g: Graph, entries: Any, index: Value) -> Value:
    """Return the entries of a list at int32 indices."""
    rows = g.constant(entries.reshape(1, -1, 1), DType.INT32)
    looked_up = g.gather_rows(rows, g.reshape(index, (1, prod(index.shape))))
    return g.reshape(looked_up, index.shape)


def _reciprocal(g: Graph, rest: Value) -> Value:
    """Return `1 / (1 + rest)` of 31 bits, as `crosschip.ops.fixed_point.newton.reciprocal`."""
    one = g.number(1, rest)
    half = g.sum(g.binary(Op.LOGICAL_RIGHT_SHIFT, rest, one), g.number(1 << 30, rest))
    x = g.sum(high_product(g, half, g.number(-1010580540, half)), g.number(1515870810, half))
    for _ in range(3):
        error = g.difference(g.number(1 << 29, x), high_product(g, half, x))
        x = g.sum(x, g.product(high_product(g, x, error), g.number(4, x)))
    largest = (1 << 30) - 1
    doubled = g.product(g.clamp(x, -(2**30), largest), g.number(2, x))
    return g.select(g.greater(x, g.number(largest, x)), g.number(2**31 - 1, x), doubled)


@fixed_point(ResizeLinear, form=UNIT, limit=_is_int8)
def resize_linear(g: Graph, op: ResizeLinear) -> Value:
    """Interpolate between neighbours with integer weights, halves away from zero."""
    pixels = g.cast(g[op.input], DType.INT32)
    for axis, low, high, weight in neighbours(op, shape_of(op.input)):
        along = np.reshape(weight, (-1,) + (1,) * (pixels.rank - 1 - axis)).astype(np.int32)
        near, far = (g.gather(pixels, each, axis) for each in (low, high))
        shares = [
            g.with_rank(g.constant(numbers.astype(np.int32), DType.INT32), pixels.rank)
            for numbers in ((1 << BITS) - along, along)
        ]
        pixels = g.sum(g.product(near, shares[0]), g.product(far, shares[1]))
    negative = g.cast(g.less(pixels, g.number(0, pixels)), DType.INT32)
    nudged = g.difference(g.sum(pixels, g.number(1 << (2 * BITS - 1), pixels)), negative)
    return clamp_integers(g, op, shift_right(g, nudged, g.number(2 * BITS, nudged)))


@fixed_point(SquaredDifference, form=PAIR, limit=_is_int8)
def squared_difference(g: Graph, op: SquaredDifference) -> Value:
    one, other, _ = _on_common_scale(g, op, 7)
    difference = g.difference(one, other)
    return offset(g, op, rescale_twice(g, g.product(difference, difference), square_factor(op)))
