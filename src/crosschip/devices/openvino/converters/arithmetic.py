"""Arithmetic on two tensors, and bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.activation import bounded
from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    NUMBERS,
    converts,
    keeping_nan,
    known_sizes,
    rank_of,
    sizes_only,
)
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal
from crosschip.ir import ElementType, Operand
from crosschip.ops.definition.kinds import Broadcast
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.arithmetic import (
    Add,
    Clip,
    Div,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
)


def binary(function: Callable[..., Node]) -> Callable[[Graph, Broadcast], Node]:
    """The converter to an OpenVINO operator on two tensors."""

    def convert(g: Graph, op: Broadcast) -> Node:
        return function(
            _with_axes_of(g, op.input0, op.input1), _with_axes_of(g, op.input1, op.input0)
        )

    return convert


def _with_axes_of(g: Graph, operand: Operand, other: Operand) -> Value:
    """An operand with all the axes that a constant adds, which OpenVINO can forget in fusing it."""
    missing = rank_of(other) - rank_of(operand)
    if missing > 0 and other.is_constant and not operand.is_constant:
        return ops.unsqueeze(g[operand], g.int64(range(missing)))
    return g[operand]


def _is_number(operand: Operand) -> bool:
    return operand.value is not None and not np.isnan(operand.value).any()


def extreme(function: Callable[..., Node]) -> Callable[[Graph, Broadcast], Node]:
    """The converter to an OpenVINO operator that loses a NaN in its first tensor.

    Where it computes what it knows as it compiles, it loses one in either.
    """

    def convert(g: Graph, op: Broadcast) -> Node:
        first, second = op.input0, op.input1
        if second.value is not None:
            first, second = second, first
        one, other = _with_axes_of(g, first, second), _with_axes_of(g, second, first)
        result = function(one, other)
        if first.type.element_type not in FLOAT_TYPES:
            return result
        if not _is_number(first):
            result = keeping_nan(one, result)
        if first.value is not None and not _is_number(second):
            result = keeping_nan(other, result)
        return result

    return convert


converts(Add, types=NUMBERS, limit=known_sizes)(binary(ops.add))
converts(Sub, types=NUMBERS, limit=known_sizes)(binary(ops.subtract))
converts(Mul, types=NUMBERS, limit=known_sizes)(binary(ops.multiply))
converts(Max, types=NUMBERS, limit=sizes_only)(extreme(ops.maximum))
converts(Min, types=NUMBERS, limit=sizes_only)(extreme(ops.minimum))
converts(Div)(binary(ops.divide))
converts(Pow)(binary(ops.power))
converts(SquaredDifference)(binary(ops.squared_difference))


# Remainders of integers are computed in float32, and by 0 they are anything.
@converts(Mod)
def mod(g: Graph, op: Mod) -> Node:
    dividend = _with_axes_of(g, op.input0, op.input1)
    divisor = _with_axes_of(g, op.input1, op.input0)
    rest = (ops.mod if op.fmod else ops.floor_mod)(dividend, divisor)
    known = op.input1.value
    if known is not None and not np.isinf(known).any():
        return rest
    # Of an infinite divisor, OpenVINO makes NaN.
    is_far = ops.logical_and(ops.is_inf(divisor), ops.logical_not(ops.is_inf(dividend)))
    whole = dividend
    if not op.fmod:
        signs = ops.multiply(ops.sign(dividend), ops.sign(divisor))
        whole = ops.select(ops.less(signs, g.number(0, op.input0)), divisor, dividend)
    return ops.select(is_far, whole, rest)


def _bounds(op: Clip) -> Refusal | None:
    if op.min > op.max:
        return Refusal("min", f"{op.min} is above max {op.max}")
    return None


# What is clipped may be far beyond int32, in which OpenVINO computes int64.
@converts(Clip, types=NUMBERS - {ElementType.INT64}, limit=_bounds)
def clip(g: Graph, op: Clip) -> Node:
    low, high = op.min, op.max
    if op.input.type.element_type not in FLOAT_TYPES:
        ends = limits(op.input.type.element_type)
        low, high = (float(np.clip(np.trunc(number), *ends)) for number in (low, high))
    return bounded(g, op.input, low, high)
