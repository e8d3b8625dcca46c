"""Sums of products of integers: convolutions and fully connected layers.

The sums are exact in float64, so that the operators' own references compute them.
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.operator import Operator
from crosschip.ops.fixed_point import INTEGERS, fixed_point
from crosschip.ops.fixed_point.rescaling import (
    Factor,
    centered,
    factor,
    half_away,
    offset,
    quantization_of,
    rescaled,
    rescaled_long,
    scale_of,
    wrapped,
)
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.matrix import FullyConnected, MatMul


@fixed_point(Conv2D, INTEGERS | {ElementType.INT32})
@fixed_point(Conv2DTranspose, INTEGERS)
def convolution(
    operation: Conv2D | Conv2DTranspose, input: Array, filter: Array, bias: Array | None = None
) -> Array:
    by = convolution_factor(operation)
    along = Factor(by.multiplier.reshape(-1, 1, 1), by.shift.reshape(-1, 1, 1))
    sums = _sums(operation, input=input, filter=filter, bias=bias).astype(np.int64)
    if operation.input.type.element_type is ElementType.INT16:
        return offset(operation, rescaled_long(sums, along))
    return offset(operation, rescaled(wrapped(sums), along))


def convolution_factor(operation: Conv2D | Conv2DTranspose) -> Factor:
    """Return the factors of sums per channel; those of int32 are of SVDF, whose are float32."""
    scales = np.array(quantization_of(operation, "filter").scale, np.float32)
    unit = scale_of(operation, "input")
    products = (
        (unit * scales).astype(np.float64)
        if operation.input.type.element_type is ElementType.UINT8
        else np.float64(unit) * scales.astype(np.float64)
    )
    if operation.input.type.element_type is ElementType.INT32:
        return factor(unit * scales / scale_of(operation))
    return factor(products / np.float64(scale_of(operation)))


@fixed_point(FullyConnected, INTEGERS)
def fully_connected(
    operation: FullyConnected, input: Array, weight: Array, bias: Array | None = None
) -> Array:
    """Rescale sums in float64, as the reference kernels do for this layer only."""
    sums = _sums(operation, input=input, weight=weight, bias=bias)
    return offset(operation, half_away(sums * layer_factors(operation)).astype(np.int64))


def layer_factors(operation: FullyConnected) -> Array:
    """Return the real factor of sums, or one per channel."""
    scales = np.array(quantization_of(operation, "weight").scale, np.float64)
    return np.float64(scale_of(operation, "input")) * scales / np.float64(scale_of(operation))


@fixed_point(FullyConnected, {ElementType.INT32})
def cell_product(
    operation: FullyConnected, input: Array, weight: Array, bias: Array | None = None
) -> Array:
    """Rescale sums of the cell of a recurrent network, by factors that are float32."""
    scales = np.array(quantization_of(operation, "weight").scale, np.float32)
    by = factor(scale_of(operation, "input") * scales / scale_of(operation))
    sums = _sums(operation, input=input, weight=weight, bias=bias).astype(np.int64)
    return offset(operation, rescaled(wrapped(sums), by))


@fixed_point(MatMul, {ElementType.INT8, ElementType.INT16})
def matrix_product(operation: MatMul, x: Array, y: Array) -> Array:
    by, sums = product_factor(operation), _sums(operation, x=x, y=y).astype(np.int64)
    if operation.x.type.element_type is ElementType.INT16:
        return offset(operation, rescaled_long(sums, by))
    return offset(operation, rescaled(wrapped(sums), by))


def product_factor(operation: MatMul) -> Factor:
    """Return the factor of the sums of a matrix product."""
    product = np.float64(scale_of(operation, "x") * scale_of(operation, "y"))
    return factor(product / np.float64(scale_of(operation)))


def _sums(operation: Operator, **tensors: Array | None) -> Array:
    """Return the integer sums of products, in float64."""
    reals = {
        slot: None if integers is None else centered(operation, slot, integers).astype(np.float64)
        for slot, integers in tensors.items()
    }
    return np.asarray(operation.reference(**reals))
