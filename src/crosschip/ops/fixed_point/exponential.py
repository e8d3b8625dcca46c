"""The exponential, logistic and hyperbolic functions of numbers in fixed point.

Results have all their bits but one, 31 or 15, after the binary point.
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.ops.fixed_point.newton import complement_ratio, narrow, reciprocal
from crosschip.ops.fixed_point.rescaling import high_product, shifted_right

_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-2**n) with 31 bits after the binary point, for n from -2 to 4."""


def exponential(exponents: Array, integer_bits: int, bits: int = 31) -> Array:
    """Return exp of numbers up to 0.

    Args:
        exponents: the numbers.
        integer_bits: how many of their bits are before the binary point.
        bits: the number of their bits, without that of the sign.
    """
    fraction_bits = bits - integer_bits
    quarter = 1 << (fraction_bits - 2)
    fraction = (exponents & (quarter - 1)) - quarter
    x = (fraction << integer_bits) + (1 << (bits - 3))
    square = high_product(x, x, bits)
    cube, fourth = high_product(square, x, bits), high_product(square, square, bits)
    third = high_product(shifted_right(fourth, 2) + cube, narrow(715827883, bits), bits)
    series = x + shifted_right(third + square, 1)
    constant, greatest = narrow(1895147668, bits), (1 << bits) - 1
    result = np.minimum(constant + high_product(series, constant, bits), greatest)
    remainder = fraction - exponents
    for power, value in zip(range(-2, integer_bits), _POWERS, strict=False):
        is_set = (remainder >> (fraction_bits + power) & 1).astype(bool)
        result = np.where(is_set, high_product(result, narrow(value, bits), bits), result)
    result = np.where(exponents < -32 << fraction_bits, 0, result)
    return np.where(exponents == 0, greatest, result)


def logistic(x: Array, integer_bits: int, bits: int = 15) -> Array:
    """Return `1 / (1 + exp(-x))`; the arguments are those of `exponential`."""
    value = reciprocal(exponential(-np.abs(x), integer_bits, bits), bits)
    value = np.where(x > 0, value, (1 << bits) - 1 - value)
    return np.where(x == 0, 1 << (bits - 1), value)


def hyperbolic_tangent(x: Array, integer_bits: int, bits: int = 15) -> Array:
    """Return `tanh(x)`; the arguments are those of `exponential`."""
    value = complement_ratio(exponential(-np.abs(x), integer_bits + 1, bits), bits)
    return np.sign(x) * value
