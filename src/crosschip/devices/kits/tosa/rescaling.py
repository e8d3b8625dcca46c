"""Rescaling of integer sums to quantized results, bit by bit as the operators round.

The result is `round(sum * ratio) + zero_point`, clamped to a type, where the ratio is that of
scales. TOSA's RESCALE multiplies by `multiplier / 2 ** shift` and rounds ties up; operators round
ties to even. Sums times a ratio of denominator `d` are ties if `d` is even and the sum's remainder
modulo `d` is `d / 2`: with a ratio of 1/6, those of 3, 9, 15, …
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op, RoundingMode
from crosschip.ir import Array, Operand, Quantization
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.fixed_point.rescaling import Factor, integer_bounds

_MULTIPLIER_BITS = 31
_MAX_SHIFT, _MIN_SHIFT = 62, 2
_FACTOR_BITS = 21
"""The number of bits of a part of a factor: products with two terms of 8 bits are added."""
_MIN_BITS = 12
"""The least number of bits after the point in each of the two parts of a factor."""


_MAX_PERIOD = 2**31
"""The greatest period of ties that sums of int32 reach the half of."""


@dataclass(frozen=True, slots=True)
class Multiplier:
    """`multiplier / 2 ** shift`, close to a positive ratio.

    Attributes:
        multiplier: 31 bits.
        shift: the exponent, from 2 to 62.
        period: the difference between two sums whose products are ties, the least of which is half
            of it; 0 if no product is a tie.
        exact: whether it equals the ratio; if not and there are ties, it is greater.
    """

    multiplier: int
    shift: int
    period: int = 0
    exact: bool = True

    @classmethod
    def of(cls, ratio: Fraction) -> Multiplier:
        """Return the nearest multiplier, or the next greater one if there are ties.

        Raises:
            ValueError: the ratio is too large.
        """
        exponent = math.frexp(float(ratio))[1]
        shift = min(_MULTIPLIER_BITS - exponent, _MAX_SHIFT)
        is_even = ratio.denominator % 2 == 0
        period = ratio.denominator if is_even and ratio.denominator <= _MAX_PERIOD else 0
        scaled = ratio * 2**shift
        multiplier = math.ceil(scaled) if period else round(scaled)
        exact = multiplier == scaled
        if multiplier == 2**_MULTIPLIER_BITS:
            multiplier, shift = multiplier // 2, shift - 1
        if shift < _MIN_SHIFT:
            raise ValueError(f"a ratio of scales of {float(ratio):g} is too large for TOSA")
        return cls(multiplier, shift, period, exact)


def scales(quantization: Quantization) -> list[Fraction]:
    """Return scales, which are float32, exactly."""
    return [Fraction(float(np.float32(scale))) for scale in quantization.scale]


def rescale(
    g: Graph, sums: Value, ratios: Sequence[Fraction], output: Operand, fused: Fuse = Fuse.NONE
) -> Value:
    """Return sums times ratios, rounded and clamped to a quantized output's type.

    Args:
        g: the graph.
        sums: int32; with several ratios, one for each index of the last axis.
        ratios: the factors.
        output: the output, whose zero point is added.
        fused: an activation of the result.
    """
    multipliers = [Multiplier.of(ratio) for ratio in ratios]
    if not any(multiplier.period for multiplier in multipliers):
        rounded = _multiply(g, sums, multipliers)
    elif all(multiplier.exact or not multiplier.period for multiplier in multipliers):
        rounded = _round_to_even(g, sums, multipliers)
    else:  # Greater multipliers round up ties of positive sums only.
        sign = g.clamp(sums, -1, 1)
        rounded = g.product(_round_to_even(g, g.product(sums, sign), multipliers), sign)
    return finish(g, rounded, output, fused)


def finish(g: Graph, rounded: Value, output: Operand, fused: Fuse = Fuse.NONE) -> Value:
    """Add an output's zero point to steps, and clamp to its type and the activation's bounds."""
    zero = _quantization(output).zero_point[0]
    # Far steps would overflow with the zero point.
    near = g.clamp(rounded, -(2**20), 2**20)
    return clamp_to_fuse(g, g.sum(near, g.number(zero, near)), output, fused)


def clamp_to_fuse(g: Graph, integers: Value, output: Operand, fused: Fuse) -> Value:
    """Clamp integers to an output's type and to the bounds of an activation."""
    quantization = _quantization(output)
    (zero,), (scale,) = quantization.zero_point, scales(quantization)
    low, high = limits(output.type.element_type)
    least, most = fused.bounds
    if least > -np.inf:
        low = max(low, round(Fraction(least) / scale) + zero)
    if most < np.inf:
        high = min(high, round(Fraction(most) / scale) + zero)
    return g.clamp(integers, low, high)


def _quantization(output: Operand) -> Quantization:
    assert output.type.quantization is not None, "the output is quantized"
    return output.type.quantization


def _multiply(
    g: Graph,
    sums: Value,
    multipliers: Sequence[Multiplier],
    mode: RoundingMode = RoundingMode.SINGLE_ROUND,
) -> Value:
    if any(multiplier.shift < 32 for multiplier in multipliers):
        sums = _within_range(g, sums, multipliers)
    numbers = np.array([multiplier.multiplier for multiplier in multipliers], np.int32)
    shifts = np.array([multiplier.shift for multiplier in multipliers], np.int8)
    zero = g.zero(DType.INT32)
    inputs = (
        sums,
        g.constant(numbers, DType.INT32),
        g.constant(shifts, DType.INT8),
        zero,
        zero,
    )
    return g.add(
        Op.RESCALE,
        inputs,
        DType.INT32,
        sums.shape,
        scale32=True,
        rounding_mode=mode,
        per_channel=len(multipliers) > 1,
        input_unsigned=False,
        output_unsigned=False,
    )


def _within_range(g: Graph, sums: Value, multipliers: Sequence[Multiplier]) -> Value:
    """Limit sums to those of results within int32, of which only such are defined."""
    bounds = [2 ** (min(multiplier.shift, 32) - 1) for multiplier in multipliers]
    most, least = _row(g, [bound - 1 for bound in bounds], sums), [-bound for bound in bounds]
    return g.binary(Op.MAXIMUM, g.binary(Op.MINIMUM, sums, most), _row(g, least, sums))


def _round_to_even(g: Graph, sums: Value, multipliers: Sequence[Multiplier]) -> Value:
    """Multiply, and take 1 from odd results of ties, which were rounded up."""
    rounded = _multiply(g, sums, multipliers)
    rests = _remainders(g, sums, [multiplier.period or 1 for multiplier in multipliers])
    # Without ties: a remainder that no sum has.
    halves = [m.period // 2 if m.period else -1 for m in multipliers]
    is_tie = g.cast(g.equal(rests, _row(g, halves, sums)), DType.INT32)
    odd = g.binary(Op.BITWISE_AND, rounded, is_tie)
    return g.difference(rounded, odd)


def _remainders(g: Graph, sums: Value, divisors: Sequence[int]) -> Value:
    """Return remainders of sums, which are not negative if a divisor is no power of 2."""
    if not any(divisor & divisor - 1 for divisor in divisors):
        return g.binary(Op.BITWISE_AND, sums, _row(g, [d - 1 for d in divisors], sums))
    # 2**31 is the least integer here, by which the quotient is 0, as it should be.
    row = _row(g, divisors, sums)
    return g.difference(sums, g.product(g.binary(Op.INTDIV, sums, row), row))


def _row(g: Graph, numbers: Sequence[int], like: Value) -> Value:
    row = np.array(numbers, np.int64).astype(np.int32)
    return g.constant(row.reshape((1,) * (like.rank - 1) + (-1,)), DType.INT32)


def rescaled_sum(
    g: Graph,
    terms: Sequence[tuple[Value, Fraction]],
    output: Operand,
    fused: Fuse = Fuse.NONE,
) -> Value:
    """Return the sum of two int32 terms of 8 bits times their ratios, rounded to an output.

    Each ratio has two parts of at most 21 bits, so that all sums are int32.
    """
    bits = _bits([ratio for _, ratio in terms])
    unit = 2**bits
    high = low = None
    for term, ratio in terms:
        upper, lower = divmod(round(ratio * unit * unit), unit)
        parts = [g.product(term, g.number(part, term)) for part in (upper, lower)]
        high = parts[0] if high is None else g.sum(high, parts[0])
        low = parts[1] if low is None else g.sum(low, parts[1])
    assert high is not None, "there are terms"
    assert low is not None, "there are terms"
    shift, mask = g.number(bits, low), g.number(unit - 1, low)
    high = g.sum(high, shift_right(g, low, shift))
    rest, fraction = g.binary(Op.BITWISE_AND, low, mask), g.binary(Op.BITWISE_AND, high, mask)
    steps = shift_right(g, high, shift)
    half = g.number(unit // 2, fraction)
    is_half = g.equal(fraction, half)
    inexact = g.greater(rest, g.number(0, rest))
    odd = g.equal(g.binary(Op.BITWISE_AND, steps, g.number(1, steps)), g.number(1, steps))
    up_from_half = g.binary(Op.LOGICAL_AND, is_half, g.binary(Op.LOGICAL_OR, inexact, odd))
    up = g.binary(Op.LOGICAL_OR, g.greater(fraction, half), up_from_half)
    return finish(g, g.sum(steps, g.cast(up, DType.INT32)), output, fused)


def _bits(ratios: Sequence[Fraction]) -> int:
    """Return the number of bits after the point in each of the two parts of factors."""
    whole = math.ceil(max(map(abs, ratios))).bit_length()
    return min(_FACTOR_BITS - whole, _FACTOR_BITS - 1)


def fit_sum(ratios: Sequence[Fraction]) -> bool:
    """Return whether a sum with these ratios is computed exactly enough by `rescaled_sum`."""
    return _bits(ratios) >= _MIN_BITS


def shift_right(g: Graph, value: Value, bits: Value, *, rounds: bool = False) -> Value:
    """Shift to the right, rounding downwards, or to nearest, halves upwards."""
    shape = np.broadcast_shapes(value.shape, bits.shape)
    return g.add(Op.ARITHMETIC_RIGHT_SHIFT, (value, bits), value.dtype, shape, round=rounds)


def rescale_twice(g: Graph, integers: Value, by: Factor) -> Value:
    """Multiply by a factor, or one for each index of the last axis, rounding twice.

    The results are those of `crosschip.ops.fixed_point.rescaling.rescaled`.

    Raises:
        ValueError: a factor is too large.
    """
    multipliers, shifts = (np.ravel(each).tolist() for each in by)
    if max(shifts) > _MULTIPLIER_BITS - _MIN_SHIFT:
        raise ValueError(f"a ratio of scales of 2**{max(shifts)} is too large for TOSA")
    pairs = zip(multipliers, shifts, strict=True)
    ratios = [Multiplier(multiplier, _MULTIPLIER_BITS - shift) for multiplier, shift in pairs]
    return _multiply(g, integers, ratios, RoundingMode.DOUBLE_ROUND)


def high_product(g: Graph, one: Value, other: Value) -> Value:
    """Return `one * other / 2**31`, as `crosschip.ops.fixed_point.rescaling.high_product`."""
    one, other = g.aligned(one, other)
    shift = g.constant(np.array([_MULTIPLIER_BITS], np.int8), DType.INT8)
    shape = np.broadcast_shapes(one.shape, other.shape)
    return g.add(Op.MUL, (one, other, shift), DType.INT32, shape)


def round_away(g: Graph, sums: Value, factors: Array) -> Value:
    """Return sums times real factors, rounded to nearest, halves away from zero.

    Args:
        g: the graph.
        sums: int32.
        factors: one factor, or one for each index of the last axis.
    """
    multipliers = [Multiplier.of(Fraction(factor)) for factor in factors.tolist()]
    if not any(multiplier.period for multiplier in multipliers):
        return _multiply(g, sums, multipliers)
    sign = g.clamp(sums, -1, 1)
    return g.product(_multiply(g, g.product(sums, sign), multipliers), sign)


def divide_away(g: Graph, sums: Value, count: int) -> Value:
    """Return sums of bytes divided by their number, rounded, halves away from zero.

    A quarter of the least difference moves halves, and no other quotient over a bound.
    """
    fine = g.sum(g.product(sums, g.number(4, sums)), g.clamp(sums, -1, 1))
    return _multiply(g, fine, [Multiplier.of(Fraction(1, 4 * count))])


def offset(g: Graph, op: Operator, integers: Value) -> Value:
    """Add an output's zero point, and clamp, as `crosschip.ops.fixed_point.rescaling.offset`."""
    zero = _quantization(op.outputs[0]).zero_point[0]
    # Far integers would overflow with the zero point.
    near = g.clamp(integers, -(2**20), 2**20)
    return clamp_integers(g, op, g.sum(near, g.number(zero, near)))


def clamp_integers(g: Graph, op: Operator, integers: Value) -> Value:
    """Clamp to an output's type, and to the integers of a fused activation's bounds."""
    least, greatest = limits(op.outputs[0].type.element_type)
    if op.fused is not Fuse.NONE:
        low, high = integer_bounds(op, op.fused.bounds)
        least, greatest = max(least, low), min(greatest, high)
    return g.clamp(integers, least, greatest)
