"""Sums and means of integers."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.fixed_point import INTEGERS, fixed_point
from crosschip.ops.fixed_point.rescaling import (
    Factor,
    centered,
    factor,
    offset,
    rescaled,
    rescaled_long,
    scale_of,
    wrapped,
)
from crosschip.ops.standard.reduction import ReduceMean, ReduceProd, ReduceSum


@fixed_point(ReduceSum, INTEGERS)
def reduce_sum(operation: ReduceSum, input: Array) -> Array:
    sums = _sums(operation, input)
    return offset(operation, rescaled(sums, sum_factor(operation)))


@fixed_point(ReduceMean, INTEGERS)
def reduce_mean(operation: ReduceMean, input: Array) -> Array:
    sums = _sums(operation, input)
    by = mean_factor(operation, input.size // max(1, sums.size))
    return offset(operation, rescaled(sums, by))


def mean_factor(operation: ReduceMean, count: int) -> Factor:
    """Return the factor of the sum of some integers: that of the scales by the count, truncated."""
    by = sum_factor(operation)
    bits = np.minimum(count.bit_length() - 1, np.minimum(32, 31 + by.shift))
    return Factor((by.multiplier << bits) // count, by.shift - bits)


@fixed_point(ReduceProd, {ElementType.INT8, ElementType.INT16})
def reduce_prod(operation: ReduceProd, input: Array) -> Array:
    """Rescale each product by the input's scale, divided by a root of the output's."""
    axes = sorted(axis % input.ndim for axis in operation.axes or range(input.ndim))
    integers = np.moveaxis(centered(operation, "input", input), axes, range(len(axes)))
    factors = integers.reshape(-1, *integers.shape[len(axes) :])
    root = np.float64(scale_of(operation)) ** (1.0 / len(factors))
    by = factor(np.float64(scale_of(operation, "input")) / root)
    product = factors[0]
    for each in factors[1:]:
        product = rescaled_long(product * each, by)
    result = offset(operation, rescaled_long(product, by))
    return np.expand_dims(result, tuple(axes)) if operation.keepdim else result


def _sums(operation: ReduceSum | ReduceMean, input: Array) -> Array:
    integers = centered(operation, "input", input)
    axes = operation.axes or None
    return wrapped(np.sum(integers, axis=axes, keepdims=operation.keepdim))


def sum_factor(operation: ReduceSum | ReduceMean) -> Factor:
    """Return the factor from the input's scale to the output's."""
    return factor(np.float64(scale_of(operation, "input")) / np.float64(scale_of(operation)))
