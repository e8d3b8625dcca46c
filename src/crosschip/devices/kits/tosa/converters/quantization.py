"""Quantization and dequantization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import STORED, converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.hal import Refusal, Rule
from crosschip.ir import Arithmetic, ElementType, Operand, Quantization
from crosschip.ir.types import NARROW_INTEGERS
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.quantization import (
    Dequantize,
    DynamicQuantize,
    Quantize,
    Reinterpret,
)

_MOST_STEPS = 2.0**31
"""The magnitude of steps that are beyond every type."""


@converts(Quantize)
def quantize(g: Graph, op: Quantize) -> Value:
    quantized, value = op.outputs[0], g[op.input]
    quantization = quantization_of(quantized)
    steps = g.rounded_quotient(value, along(g, quantized, quantization.scale, DType.FP32))
    # NaN becomes the smallest integer.
    steps = g.select(g.equal(steps, steps), steps, g.number(-_MOST_STEPS, steps))
    near = g.clamp(steps, -_MOST_STEPS, _MOST_STEPS)
    is_fixed = quantization.arithmetic is Arithmetic.FIXED_POINT
    rounded = _round_away(g, near) if is_fixed else g.cast(near, DType.INT32)
    zero_points = along(g, quantized, quantization.zero_point, DType.INT32)
    result = _add_within(g, rounded, zero_points, op)
    return _saturate(g, steps, result) if op.dtype is ElementType.INT32 else result


def _add_within(g: Graph, integers: Value, zero_points: Value, op: Quantize) -> Value:
    """Add zero points, and limit the sums to the output's type without exceeding int32."""
    zeros = zero_points.elements
    assert zeros is not None, "zero points are constant"
    int32 = np.iinfo(np.int32)
    least, most = (
        (bound - zeros.astype(np.int64)).clip(int32.min, int32.max).astype(np.int32)
        for bound in limits(op.dtype)
    )
    limited = g.binary(Op.MAXIMUM, integers, g.constant(least, DType.INT32))
    limited = g.binary(Op.MINIMUM, limited, g.constant(most, DType.INT32))
    return g.sum(limited, zero_points)


def _saturate(g: Graph, steps: Value, result: Value) -> Value:
    """Return the ends of int32 for steps beyond them, to which no zero point is added."""
    least, most = (g.number(bound, result) for bound in limits(ElementType.INT32))
    is_below = g.greater_equal(g.number(-_MOST_STEPS, steps), steps)
    is_above = g.greater_equal(steps, g.number(_MOST_STEPS, steps))
    return g.select(is_below, least, g.select(is_above, most, result))


def _stored(op: Dequantize) -> Refusal | None:
    element_type = op.input.type.element_type
    if element_type in NARROW_INTEGERS and not op.input.is_constant:
        return Refusal("input", f"{element_type} must be constant here", Rule.ELEMENT_TYPE)
    return None


def _round_away(g: Graph, value: Value) -> Value:
    """Round reals to int32, halves away from zero."""
    size = g.unary(Op.ABS, value)
    whole = g.unary(Op.FLOOR, size)
    is_above = g.greater_equal(g.difference(size, whole), g.number(0.5, size))
    steps = g.sum(g.cast(whole, DType.INT32), g.cast(is_above, DType.INT32))
    is_negative = g.less(value, g.number(0, value))
    return g.select(is_negative, g.difference(g.number(0, steps), steps), steps)


@converts(Dequantize, types=STORED | NARROW_INTEGERS, limit=_stored)
def dequantize(g: Graph, op: Dequantize) -> Value:
    quantization = quantization_of(op.input)
    zero_point = along(g, op.input, quantization.zero_point, DType.INT32)
    steps = g.cast(g.difference(g.cast(g[op.input], DType.INT32), zero_point), DType.FP32)
    return g.product(steps, along(g, op.input, quantization.scale, DType.FP32))


@converts(DynamicQuantize)
def dynamic_quantize(g: Graph, op: DynamicQuantize) -> list[Value]:
    """Divide as IEEE 754 rounds: a last digit can change an integer, and much after it."""
    value = g[op.input]
    axes, zero = list(range(value.rank)), g.number(0, value)
    low = g.binary(Op.MINIMUM, g.reduce(Op.REDUCE_MIN, value, axes), zero)
    high = g.binary(Op.MAXIMUM, g.reduce(Op.REDUCE_MAX, value, axes), zero)
    step = g.rounded_quotient(g.difference(high, low), g.number(255, value))
    scale = g.select(g.equal(step, zero), g.number(1, step), step)
    shift = g.round(g.rounded_quotient(g.difference(zero, low), scale))
    steps = g.sum(g.round(g.rounded_quotient(value, scale)), shift)
    integers = g.cast(g.clamp(steps, 0, 255), DType.INT32)
    return [integers, scale, g.cast(shift, DType.INT32)]


@converts(Reinterpret, narrow=True)
def reinterpret(g: Graph, op: Reinterpret) -> Value:
    return g[op.input]


def quantization_of(operand: Operand) -> Quantization:
    """Return the quantization of an operand that has one."""
    assert operand.type.quantization is not None, "inference has checked it"
    return operand.type.quantization


def along(g: Graph, operand: Operand, numbers: Sequence[float], dtype: DType) -> Value:
    """Return a constant that broadcasts along the quantization axis of an operand."""
    kind = np.float32 if dtype is DType.FP32 else np.int32
    axis = quantization_of(operand).axis
    rank = len(operand.type.static_shape or ())
    if axis is None:
        return g.constant(np.array(numbers[:1], kind).reshape((1,) * rank), dtype)
    return g.constant(
        np.array(numbers, kind).reshape((-1,) + (1,) * (rank - 1 - axis % rank)), dtype
    )
