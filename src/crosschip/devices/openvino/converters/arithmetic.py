"""Arithmetic on two tensors, and bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.activation import bounded
from crosschip.devices.openvino.converters.table import (
    EXACT,
    FLOAT_TYPES,
    NUMBERS,
    converts,
    is_exact,
    keeping_nan,
    rank_of,
)
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES
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


def _bounded(op: Max | Min) -> Refusal | None:
    """The rule for a constant of integers, which OpenVINO rounds to float32."""
    if op.input0.type.element_type not in FLOAT_TYPES:
        for slot, operand in (("input0", op.input0), ("input1", op.input1)):
            if not is_exact(operand.value):
                return Refusal(slot, "is rounded to float32")
    return None


converts(Add, types=NUMBERS)(binary(ops.add))
converts(Sub, types=NUMBERS)(binary(ops.subtract))
converts(Max, types=NUMBERS, limit=_bounded)(extreme(ops.maximum))
converts(Min, types=NUMBERS, limit=_bounded)(extreme(ops.minimum))
converts(Pow)(binary(ops.power))
converts(SquaredDifference, types=FLOAT_TYPES | INDICES)(binary(ops.squared_difference))


_LOST_BESIDE = 2.0**15
"""Sums of a constant from here on with usual numbers lose most of their digits."""


@converts(Mul, types=NUMBERS)
def mul(g: Graph, op: Mul) -> Node:
    """A product; one by a large constant, as masks of transformers are, is kept apart.

    OpenVINO would make `(1 - mask) * large + known` of it `-mask * large + (large + known)`.
    """
    product = binary(ops.multiply)(g, op)
    factor, other = (op.input0, op.input1) if op.input0.is_constant else (op.input1, op.input0)
    if op.input0.type.element_type not in FLOAT_TYPES or not _is_large(factor):
        return product
    return ops.select(ops.equal(g[other], g.number(0, other)), g.number(0, other), product)


def _is_large(operand: Operand) -> bool:
    if operand.value is None:
        return False
    largest = np.abs(operand.value).max(initial=0)
    return bool(np.isfinite(largest) and largest >= _LOST_BESIDE)


def by_some(g: Graph, op: Broadcast, function: Callable[..., Node]) -> Node:
    """Quotients or remainders of integers; by 0, they are 0, where OpenVINO makes anything."""
    dividend = _with_axes_of(g, op.input0, op.input1)
    divisor = _with_axes_of(g, op.input1, op.input0)
    known = op.input1.value
    if known is not None and known.all():
        return function(dividend, divisor)
    zero = g.number(0, op.input1)
    is_zero = ops.equal(divisor, zero)
    return ops.select(
        is_zero, zero, function(dividend, ops.select(is_zero, g.number(1, op.input1), divisor))
    )


def _towards_zero(dividend: Value, divisor: Value) -> Node:
    """The quotient of integers, of which OpenVINO rounds down what it knows as it compiles."""
    quotient = ops.divide(dividend, divisor)
    quotient.set_attribute("m_pythondiv", False)
    return quotient


# Quotients and remainders of integers are computed in float32.
@converts(Div, types=NUMBERS, bits=EXACT)
def div(g: Graph, op: Div) -> Node:
    if op.input0.type.element_type not in FLOAT_TYPES:
        return by_some(g, op, _towards_zero)
    return binary(ops.divide)(g, op)


@converts(Mod, types=NUMBERS, bits=EXACT)
def mod(g: Graph, op: Mod) -> Node:
    if op.input0.type.element_type not in FLOAT_TYPES:
        return by_some(g, op, ops.mod if op.fmod else ops.floor_mod)
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


def _held(op: Clip) -> tuple[float, float]:
    """The least and the greatest integer of the input's type as it is computed in."""
    own = op.input.type.element_type
    least, most = limits(ElementType.INT32 if own is ElementType.INT64 else own)
    return float(least), float(most)


def _bounds(op: Clip) -> Refusal | None:
    if op.min > op.max:
        return Refusal("min", f"{op.min} is above max {op.max}")
    if op.input.type.element_type not in FLOAT_TYPES:
        least, most = _held(op)
        for slot, bound in (("min", op.min), ("max", op.max)):
            if least < bound < most and not is_exact(np.array(bound, np.int64)):
                return Refusal(slot, "is rounded to float32")
    return None


@converts(Clip, types=NUMBERS, limit=_bounds)
def clip(g: Graph, op: Clip) -> Node:
    low, high = op.min, op.max
    if op.input.type.element_type not in FLOAT_TYPES:
        low, high = (float(np.clip(np.trunc(bound), *_held(op))) for bound in (low, high))
    return bounded(g, op.input, low, high)
