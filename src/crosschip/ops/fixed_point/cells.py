"""Cells of recurrent networks, whose intermediate results are declared as int32.

All but the states have this type here, so that the arithmetic differs from that of the operators
outside of cells. Results are not saturated, except by CLIP.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.kinds import Binary
from crosschip.ops.definition.operator import Operator
from crosschip.ops.fixed_point import fixed_point
from crosschip.ops.fixed_point.exponential import hyperbolic_tangent, logistic
from crosschip.ops.fixed_point.rescaling import centered, half_away, offset, scale_of
from crosschip.ops.standard.activation import Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul, Sub

_INT32 = {ElementType.INT32}


@fixed_point(Add, _INT32)
def add(operation: Add, input0: Array, input1: Array) -> Array:
    return _combine(operation, np.add, input0, input1)


@fixed_point(Sub, _INT32)
def sub(operation: Sub, input0: Array, input1: Array) -> Array:
    return _combine(operation, np.subtract, input0, input1)


@fixed_point(Mul, _INT32)
def mul(operation: Mul, input0: Array, input1: Array) -> Array:
    return _combine(operation, np.multiply, input0, input1)


def _combine(
    operation: Binary, function: Callable[[Array, Array], Array], input0: Array, input1: Array
) -> Array:
    """Compute in float64, and round once, halves away from zero."""
    first, second = (
        centered(operation, slot, integers) * np.float64(scale_of(operation, slot))
        for slot, integers in (("input0", input0), ("input1", input1))
    )
    steps = half_away(function(first, second) / np.float64(scale_of(operation)))
    return offset(operation, steps.astype(np.int64))


@fixed_point(Sigmoid, _INT32)
def sigmoid(operation: Sigmoid, input: Array) -> Array:
    return offset(operation, logistic(input.astype(np.int64), _integer_bits(operation)))


@fixed_point(Tanh, _INT32)
def tanh(operation: Tanh, input: Array) -> Array:
    return offset(operation, hyperbolic_tangent(input.astype(np.int64), _integer_bits(operation)))


def _integer_bits(operation: Operator) -> int:
    """Return how many of the input's 15 bits are before the binary point; its scale says it."""
    return 15 + round(float(np.log2(scale_of(operation, "input"))))
