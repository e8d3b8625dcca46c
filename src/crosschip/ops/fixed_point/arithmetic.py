"""Elementwise arithmetic on integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.kinds import Binary
from crosschip.ops.fixed_point import INTEGERS, fixed_point
from crosschip.ops.fixed_point.newton import bit_length, reciprocal
from crosschip.ops.fixed_point.rescaling import (
    Factor,
    centered,
    clamped,
    factor,
    high_product,
    offset,
    rescaled,
    scale_of,
)
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul, SquaredDifference, Sub


@fixed_point(Add, INTEGERS)
def add(operation: Add, input0: Array, input1: Array) -> Array:
    return _combine(operation, np.add, input0, input1)


@fixed_point(Sub, INTEGERS)
def sub(operation: Sub, input0: Array, input1: Array) -> Array:
    return _combine(operation, np.subtract, input0, input1)


def _combine(
    operation: Binary, function: Callable[[Array, Array], Array], input0: Array, input1: Array
) -> Array:
    """Apply a function to both inputs on a common finer scale: half of the greater one."""
    bits = 15 if operation.input0.type.element_type is ElementType.INT16 else 20
    first, second, unit = addition_factors(operation, bits)
    one = rescaled(centered(operation, "input0", input0) << bits, first)
    other = rescaled(centered(operation, "input1", input1) << bits, second)
    return offset(operation, rescaled(function(one, other), unit))


def addition_factors(
    operation: Binary | SquaredDifference, bits: int
) -> tuple[Factor, Factor, Factor]:
    """Return the factors of the inputs with some more bits, and of their sum."""
    scales = [scale_of(operation, slot) for slot in ("input0", "input1")]
    twice = np.float64(2 * max(scales))
    unit = factor(twice / np.float64(np.float32(1 << bits) * scale_of(operation)))
    return factor(scales[0] / twice), factor(scales[1] / twice), unit


@fixed_point(Mul, INTEGERS)
def mul(operation: Mul, input0: Array, input1: Array) -> Array:
    products = centered(operation, "input0", input0) * centered(operation, "input1", input1)
    return offset(operation, rescaled(products, multiplication_factor(operation)))


def multiplication_factor(operation: Mul) -> Factor:
    """Return the factor of the products of the inputs' integers."""
    scale = scale_of(operation, "input0") * scale_of(operation, "input1") / scale_of(operation)
    return factor(scale)


@fixed_point(Div, INTEGERS)
def div(operation: Div, input0: Array, input1: Array) -> Array:
    """Multiply by reciprocals, with as many bits as fit; divisors that are 0 count as 1."""
    divisor = centered(operation, "input1", input1)
    dividend = centered(operation, "input0", input0) * np.where(divisor < 0, -1, 1)
    divisor = np.maximum(np.abs(divisor), 1)
    size = bit_length(divisor)
    inverse = reciprocal((divisor << (32 - size)) - (1 << 31))
    room = 31 - bit_length(np.where(dividend < 0, ~dividend, dividend))
    quotient = high_product(dividend << room, inverse)
    by = factor(
        scale_of(operation, "input0") / (scale_of(operation, "input1") * scale_of(operation))
    )
    shift = by.shift - (size - 1) - room
    return offset(operation, rescaled(quotient, Factor(by.multiplier, shift)))


@fixed_point(SquaredDifference, {ElementType.INT8})
def squared_difference(operation: SquaredDifference, input0: Array, input1: Array) -> Array:
    """Square the difference on the common scale of the inputs with 7 more bits."""
    first, second, _ = addition_factors(operation, 7)
    one = rescaled(centered(operation, "input0", input0) << 7, first)
    other = rescaled(centered(operation, "input1", input1) << 7, second)
    return offset(operation, rescaled((one - other) ** 2, square_factor(operation)))


def square_factor(operation: SquaredDifference) -> Factor:
    """Return the factor of squares of differences with 7 more bits."""
    twice = np.float64(2 * max(scale_of(operation, slot) for slot in ("input0", "input1")))
    return factor(twice * twice / np.float64(np.float32(1 << 14) * scale_of(operation)))


@fixed_point(Max, INTEGERS)
def maximum(operation: Max, input0: Array, input1: Array) -> Array:
    return clamped(operation, np.maximum(input0, input1))


@fixed_point(Min, INTEGERS)
def minimum(operation: Min, input0: Array, input1: Array) -> Array:
    return clamped(operation, np.minimum(input0, input1))
