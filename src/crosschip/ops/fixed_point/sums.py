"""Sums of products of integers: convolutions and fully connected layers.

The sums are exact in float64, so that the operators' own references compute them.
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType, Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.fixed_point import INTEGERS, fixed_point
from crosschip.ops.fixed_point.rescaling import (
    Factor,
    centered,
    factor,
    offset,
    quantization_of,
    rescaled,
    rescaled_long,
    scale_of,
    wrapped,
)
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.matrix import FullyConnected


@fixed_point(Conv2D, INTEGERS)
@fixed_point(Conv2DTranspose, INTEGERS)
def convolution(
    operation: Conv2D | Conv2DTranspose, input: Array, filter: Array, bias: Array | None = None
) -> Array:
    by_tensor = operation.input.type.element_type is ElementType.UINT8
    scales = _factor(operation, "filter", float32=by_tensor)
    along = Factor(scales.multiplier.reshape(-1, 1, 1), scales.shift.reshape(-1, 1, 1))
    return _rescaled_sums(operation, along, input=input, filter=filter, bias=bias)


@fixed_point(FullyConnected, INTEGERS)
def fully_connected(
    operation: FullyConnected, input: Array, weight: Array, bias: Array | None = None
) -> Array:
    by_tensor = quantization_of(operation, "weight").axis is None
    scales = _factor(operation, "weight", float32=by_tensor)
    return _rescaled_sums(operation, scales, input=input, weight=weight, bias=bias)


def _factor(operation: Operator, weight: str, *, float32: bool) -> Factor:
    """Return the factor from sums to the output; `float32` rounds the product of two scales."""
    scales = np.array(quantization_of(operation, weight).scale, np.float32)
    products = (
        (scale_of(operation, "input") * scales).astype(np.float64)
        if float32
        else np.float64(scale_of(operation, "input")) * scales.astype(np.float64)
    )
    return factor(products / np.float64(scale_of(operation)))


def _rescaled_sums(operation: Operator, by: Factor, **tensors: Array | None) -> Array:
    reals = {
        slot: None if integers is None else centered(operation, slot, integers).astype(np.float64)
        for slot, integers in tensors.items()
    }
    sums = np.asarray(operation.reference(**reals)).astype(np.int64)
    input: Operand | None = operation.operand("input")
    if input is not None and input.type.element_type is ElementType.INT16:
        return offset(operation, rescaled_long(sums, by))
    return offset(operation, rescaled(wrapped(sums), by))
