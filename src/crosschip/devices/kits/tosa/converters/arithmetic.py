"""Arithmetic on two or more tensors, and clipping."""

from __future__ import annotations

from functools import reduce

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import (
    NUMBERS,
    REALS,
    binary,
    converts,
    is_real,
)
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard import arithmetic

converts(arithmetic.Add, types=NUMBERS)(binary(Op.ADD))
converts(arithmetic.Sub, types=NUMBERS)(binary(Op.SUB))
converts(arithmetic.Mul, types=NUMBERS)(binary(Op.MUL))
converts(arithmetic.Max, types=NUMBERS)(binary(Op.MAXIMUM))
converts(arithmetic.Min, types=NUMBERS)(binary(Op.MINIMUM))


@converts(arithmetic.Sum, types=NUMBERS)
def sum_(g: Graph, op: arithmetic.Sum) -> Value:
    return reduce(g.sum, [g[term] for term in op.terms])


@converts(arithmetic.Clip, types=NUMBERS)
def clip(g: Graph, op: arithmetic.Clip) -> Value:
    low, high = op.min, op.max
    if not is_real(op.input):
        least, greatest = limits(op.input.type.element_type)
        low, high = (min(max(bound, least), greatest) for bound in (low, high))
    return g.clamp(g[op.input], low, high)


@converts(arithmetic.Div, types=NUMBERS)
def div(g: Graph, op: arithmetic.Div) -> Value:
    one, other = g[op.input0], g[op.input1]
    return g.quotient(one, other) if is_real(op.input0) else _divide_integers(g, one, other)


@converts(arithmetic.FloorDiv, types=NUMBERS)
def floor_div(g: Graph, op: arithmetic.FloorDiv) -> Value:
    one, other = g[op.input0], g[op.input1]
    if is_real(op.input0):
        return g.unary(Op.FLOOR, g.rounded_quotient(one, other))
    quotient = _divide_integers(g, one, other)
    rest = g.difference(one, g.product(quotient, other))
    down = _differ_in_sign(g, rest, other)
    guarded = g.select(g.equal(other, g.number(0, other)), g.number(0, rest), rest)
    inexact = g.logical_not(g.equal(guarded, g.number(0, guarded)))
    step = g.cast(g.binary(Op.LOGICAL_AND, inexact, down), DType.INT32)
    return g.difference(quotient, step)


@converts(arithmetic.Mod, types=NUMBERS)
def mod(g: Graph, op: arithmetic.Mod) -> Value:
    one, other = g[op.input0], g[op.input1]
    if is_real(op.input0):
        rest = _remainder(g, one, other)
    else:
        rest = g.difference(one, g.product(_divide_integers(g, one, other), other))
        rest = g.select(g.equal(other, g.number(0, other)), g.number(0, rest), rest)
    if op.fmod:
        return rest
    zero = g.number(0, rest)
    moved = g.binary(
        Op.LOGICAL_AND, g.logical_not(g.equal(rest, zero)), _differ_in_sign(g, rest, other)
    )
    # The sum of others may overflow.
    return g.sum(rest, g.select(moved, other, g.number(0, other)))


def _remainder(g: Graph, one: Value, other: Value) -> Value:
    """Return the remainder of reals with the sign of the dividend."""
    size, divisor = g.unary(Op.ABS, one), g.unary(Op.ABS, other)
    infinite = g.equal(divisor, g.number(np.inf, divisor))
    count = g.unary(Op.FLOOR, g.quotient(size, divisor))
    rest = g.less_products(size, count, divisor)
    zero = g.number(0, rest)
    # The count may be off by one.
    rest = g.select(g.greater(zero, rest), g.sum(rest, divisor), rest)
    rest = g.select(g.greater_equal(rest, divisor), g.difference(rest, divisor), rest)
    finite = g.less(size, g.number(np.inf, size))
    rest = g.select(g.binary(Op.LOGICAL_AND, infinite, finite), size, rest)
    return g.select(g.greater(g.number(0, one), one), g.unary(Op.NEGATE, rest), rest)


def _differ_in_sign(g: Graph, one: Value, other: Value) -> Value:
    zero = g.number(0, one)
    return g.binary(Op.LOGICAL_XOR, g.greater(zero, one), g.greater(g.number(0, other), other))


def _divide_integers(g: Graph, one: Value, other: Value) -> Value:
    """Divide integers towards zero; by 0 is 0, and the least integer by -1 is itself."""
    zero, least = g.number(0, other), g.number(-(2**31), one)
    by_zero = g.equal(other, zero)
    overflows = g.binary(Op.LOGICAL_AND, g.equal(one, least), g.equal(other, g.number(-1, other)))
    unsafe = g.binary(Op.LOGICAL_OR, by_zero, overflows)
    quotient = g.binary(Op.INTDIV, one, g.select(unsafe, g.number(1, other), other))
    return g.select(by_zero, g.number(0, quotient), quotient)


@converts(arithmetic.Pow, types=NUMBERS)
def pow_(g: Graph, op: arithmetic.Pow) -> Value:
    base, exponent = g[op.input0], g[op.input1]
    return _real_power(g, base, exponent) if is_real(op.input0) else _power(g, base, exponent)


def _real_power(g: Graph, base: Value, exponent: Value) -> Value:
    """Return the power of reals; TOSA's is defined for positive and finite bases."""
    if exponent.elements is not None and np.all(exponent.elements == 2):
        return g.broadcast(g.product(base, base), np.broadcast_shapes(base.shape, exponent.shape))
    base, exponent = g.aligned(base, exponent)
    zero, one, infinity = (g.number(number, base) for number in (0, 1, np.inf))
    size, exponent_size = g.unary(Op.ABS, base), g.unary(Op.ABS, exponent)
    finite = g.binary(Op.LOGICAL_AND, g.greater(size, zero), g.less(size, infinity))
    finite_exponent = g.less(exponent_size, infinity)
    power = g.binary(Op.POW, g.select(finite, size, one), g.select(finite_exponent, exponent, zero))
    # 0 and infinities, also as an exponent of a base other than 1.
    grows = g.equal(g.greater(size, one), g.greater(exponent, zero))
    regular = g.binary(
        Op.LOGICAL_AND, finite, g.binary(Op.LOGICAL_OR, finite_exponent, g.equal(size, one))
    )
    power = g.select(regular, power, g.select(grows, infinity, zero))
    half = g.product(exponent, g.number(0.5, exponent))
    whole = g.equal(exponent, g.unary(Op.FLOOR, exponent))
    fraction = g.logical_not(g.equal(half, g.unary(Op.FLOOR, half)))
    odd = g.binary(Op.LOGICAL_AND, whole, fraction)
    signed = g.select(odd, g.unary(Op.NEGATE, power), power)
    undefined = g.binary(Op.LOGICAL_AND, g.logical_not(whole), finite)
    signed = g.select(undefined, g.number(np.nan, base), signed)
    # The reciprocal of -0 is negative.
    sign = g.select(g.equal(base, zero), g.unary(Op.RECIPROCAL, base), base)
    power = g.select(g.greater(zero, sign), signed, power)
    known = g.binary(Op.LOGICAL_AND, g.equal(base, base), g.equal(exponent, exponent))
    power = g.select(known, power, g.number(np.nan, base))
    is_one = g.binary(Op.LOGICAL_OR, g.equal(exponent, zero), g.equal(base, one))
    return g.select(is_one, one, power)


def _power(g: Graph, base: Value, exponent: Value) -> Value:
    """Return the power of integers by repeated squaring."""
    zero, one = g.number(0, exponent), g.number(1, base)
    bits = 31
    if exponent.elements is not None:
        bits = int(exponent.elements.max(initial=0)).bit_length()
    rest = g.binary(Op.MAXIMUM, exponent, zero)
    odd = _is_odd(g, exponent)
    result, square = one, base
    for bit in range(bits):
        result = g.product(result, g.select(_is_odd(g, rest), square, one))
        if bit < bits - 1:
            square = g.product(square, square)
            rest = g.binary(Op.LOGICAL_RIGHT_SHIFT, rest, g.number(1, rest))
    unit = g.equal(g.unary(Op.ABS, base), one)
    inverse = g.select(unit, g.select(odd, base, one), g.number(0, base))
    return g.select(g.greater(zero, exponent), inverse, result)


def _is_odd(g: Graph, value: Value) -> Value:
    low = g.binary(Op.BITWISE_AND, value, g.number(1, value))
    return g.equal(low, g.number(1, low))


@converts(arithmetic.SquaredDifference, types=REALS)
def squared_difference(g: Graph, op: arithmetic.SquaredDifference) -> Value:
    difference = g.difference(g[op.input0], g[op.input1])
    return g.product(difference, difference)
