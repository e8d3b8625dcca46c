"""Arithmetic on two tensors, and clipping."""

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
)
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal
from crosschip.ir import ElementType
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
    """Return a converter to an OpenVINO operation on two tensors."""

    def convert(g: Graph, op: Broadcast) -> Node:
        return function(g[op.input0], g[op.input1])

    return convert


def _check_constants(op: Max | Min) -> Refusal | None:
    """Refuse constant integers that float32 does not hold (quirk `extremes-of-large-integers`)."""
    if op.input0.type.element_type not in FLOAT_TYPES:
        for slot, operand in (("input0", op.input0), ("input1", op.input1)):
            if not is_exact(operand.value):
                return Refusal(slot, "is rounded to float32")
    return None


converts(Add, types=NUMBERS)(binary(ops.add))
converts(Sub, types=NUMBERS)(binary(ops.subtract))
converts(Mul, types=NUMBERS)(binary(ops.multiply))
converts(Max, types=NUMBERS, limit=_check_constants)(binary(ops.maximum))
converts(Min, types=NUMBERS, limit=_check_constants)(binary(ops.minimum))
converts(Pow)(binary(ops.power))
converts(SquaredDifference, types=FLOAT_TYPES | INDICES)(binary(ops.squared_difference))


def _divide_integers(dividend: Value, divisor: Value) -> Node:
    """Divide integers, rounding towards zero.

    Without `m_pythondiv=False`, constant folding rounds down (quirk
    `folded-quotient-of-integers`).
    """
    quotient = ops.divide(dividend, divisor)
    quotient.set_attribute("m_pythondiv", False)
    return quotient


# Quirk `quotient-of-large-integers`.
@converts(Div, types=NUMBERS, bits=EXACT)
def div(g: Graph, op: Div) -> Node:
    is_real = op.input0.type.element_type in FLOAT_TYPES
    return binary(ops.divide if is_real else _divide_integers)(g, op)


@converts(Mod, types=NUMBERS, bits=EXACT)
def mod(g: Graph, op: Mod) -> Node:
    return binary(ops.mod if op.fmod else ops.floor_mod)(g, op)


def _integer_range(op: Clip) -> tuple[float, float]:
    """Return the least and the greatest integer of the type in which the operation is computed."""
    element_type = op.input.type.element_type
    least, most = limits(ElementType.INT32 if element_type is ElementType.INT64 else element_type)
    return float(least), float(most)


def _check_bounds(op: Clip) -> Refusal | None:
    if op.min > op.max:
        return Refusal("min", f"{op.min} is above max {op.max}")
    if op.input.type.element_type not in FLOAT_TYPES:
        least, most = _integer_range(op)
        for slot, bound in (("min", op.min), ("max", op.max)):
            if least < bound < most and not is_exact(np.array(bound, np.int64)):
                return Refusal(slot, "is rounded to float32")
    return None


@converts(Clip, types=NUMBERS, limit=_check_bounds)
def clip(g: Graph, op: Clip) -> Node:
    low, high = op.min, op.max
    if op.input.type.element_type not in FLOAT_TYPES:
        low, high = (float(np.clip(np.trunc(bound), *_integer_range(op))) for bound in (low, high))
    return bounded(g, op.input, low, high)
