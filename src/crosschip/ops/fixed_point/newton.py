"""Reciprocals and inverse square roots of integers, by Newton's method."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.ops.fixed_point.rescaling import Factor, high_product, shifted_right

_GREATEST = (1 << 31) - 1


def reciprocal(rest: Array, bits: int = 31) -> Array:
    """Return `1 / (1 + rest)`, from 0 to 1 with some bits after the binary point."""
    return np.minimum(_inverse(rest, bits) << 1, (1 << bits) - 1)


def complement_ratio(x: Array, bits: int) -> Array:
    """Return `(1 - x) / (1 + x)`, from 0 to 1 with some bits after the binary point."""
    return np.minimum((_inverse(x, bits) - (1 << (bits - 2))) << 2, (1 << bits) - 1)


def _inverse(rest: Array, bits: int) -> Array:
    """Return `2 / (1 + rest)` by three steps of Newton's method, 2 bits less after the point."""
    total = rest + (1 << bits) - 1
    half = (total + np.where(total >= 0, 1, -1)) // 2
    x = narrow(1515870810, bits) + high_product(half, narrow(-1010580540, bits), bits)
    for _ in range(3):
        error = (1 << (bits - 2)) - high_product(half, x, bits)
        x = x + (high_product(x, error, bits) << 2)
    return x


def narrow(constant: int, bits: int) -> Array:
    """Return a constant of 31 bits rounded to fewer bits."""
    return shifted_right(np.array(constant), 31 - bits)


def inverse_square_root(integers: Array) -> Factor:
    """Return `1 / sqrt(integers)` by five steps of Newton's method; of 0 that of 1."""
    x, shift = np.maximum(integers, 2), np.full(integers.shape, 11)
    while (is_large := x >= 1 << 29).any():
        x, shift = np.where(is_large, x // 4, x), shift + is_large
    pairs = (31 - bit_length(x)) // 2 - 1
    shift = shift - pairs
    half = shifted_right((x << 2 * pairs) >> 1, 1)
    root = np.full(x.shape, 1 << 28)
    for _ in range(5):
        cube = high_product(high_product(root, root), root) << 6
        root = high_product(np.full(x.shape, 3 << 27), root) - high_product(half, cube) << 3
    multiplier = high_product(root, 1518500250) << np.maximum(-shift, 0)
    is_one = integers <= 1
    return Factor(
        np.where(is_one, _GREATEST, multiplier), np.where(is_one, 0, -np.maximum(shift, 0))
    )


def bit_length(integers: Array) -> Array:
    """Return the number of bits of integers from 0 to below 2**53; 0 has none."""
    return np.frexp(integers.astype(np.float64))[1].astype(np.int64)
