"""Quirks of elementwise functions."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.quirks import Raises
from crosschip.devices.litert import limits, lowering
from crosschip.devices.litert.quirks.registry import Node, options, quirk
from crosschip.ir import ElementType
from crosschip.ops.standard.arithmetic import Add, Div, FloorDiv, Max, Min, Mul, Pow, Sub
from crosschip.ops.standard.conversion import BitCast
from crosschip.ops.standard.unary import Exp, Log, Neg, Rsqrt

_NAN, _INF = np.nan, np.inf


@quirk(
    Exp,
    when="an element is NaN",
    what="returns 0",
    avoided_by=lowering.nan_of_exponential,
    inputs=[[_NAN, 0]],
    right=[_NAN, 1],
    wrong=[0, 1],
    model=lambda b, x: b.add(Exp, x),
)
def exp_of_nan() -> Node:
    return Node("EXP", options("ExpOptions"))


@quirk(
    Log,
    when="an element is NaN or infinity",
    what="returns a number near 88",
    avoided_by=lowering.logarithm_of_finite,
    inputs=[[_NAN, _INF, 1]],
    right=[_NAN, _INF, 0],
    wrong=[88.78173, 88.37627, 0],
    model=lambda b, x: b.add(Log, x),
)
def log_of_nan() -> Node:
    return Node("LOG")


@quirk(
    Rsqrt,
    when="an element is 0",
    what="returns NaN",
    avoided_by=lowering.reciprocal_of_root,
    inputs=[[0, 4]],
    right=[_INF, 0.5],
    wrong=[_NAN, 0.5],
    model=lambda b, x: b.add(Rsqrt, x),
)
def rsqrt_of_zero() -> Node:
    return Node("RSQRT")


@quirk(
    Neg,
    when="an element is 0",
    what="returns 0, not -0",
    avoided_by=lowering.negative_as_product,
    inputs=[np.zeros(3, np.float32)],
    right=np.full(3, 2**31, np.uint32),
    wrong=np.zeros(3, np.uint32),
    model=lambda b, x: b.add(BitCast, b.add(Neg, x), ElementType.UINT32),
)
def negative_of_zero() -> Node:
    return Node("NEG", options("NegOptions"))


@quirk(
    Max,
    when="the first of two elements is NaN, or the second of two that are broadcast",
    what="returns the other one",
    avoided_by=lowering.nan_of_extreme,
    inputs=[[_NAN, 1], [1, _NAN]],
    right=[_NAN, _NAN],
    wrong=[1, _NAN],
    model=lambda b, x, y: b.add(Max, x, y),
)
def maximum_of_nan() -> Node:
    return Node("MAXIMUM", options("MaximumMinimumOptions"))


@quirk(
    Min,
    when="the first of two elements is NaN, or the second of two that are broadcast",
    what="returns the other one",
    avoided_by=lowering.nan_of_extreme,
    inputs=[[_NAN, 1], [1, _NAN]],
    right=[_NAN, _NAN],
    wrong=[1, _NAN],
    model=lambda b, x, y: b.add(Min, x, y),
)
def minimum_of_nan() -> Node:
    return Node("MINIMUM", options("MaximumMinimumOptions"))


@quirk(
    Pow,
    when="there is one exponent, an integer, and a power is infinite",
    what="returns the largest number",
    avoided_by=[lowering.power_in_full, limits.several_powers],
    inputs=[[_INF, 3]],
    right=[_INF, 9],
    wrong=[np.finfo(np.float32).max, 9],
    model=lambda b, x: b.add(Pow, x, np.float32(2)),
)
def power_of_infinity() -> Node:
    return Node("POW", options("PowOptions"), [np.array(2, np.float32)])


@quirk(
    *(Add, Div, Mul, Sub),
    when="tensors have seven axes or more, and a result is infinite",
    what="returns the largest number",
    avoided_by=limits.few_axes,
    inputs=[np.full((1, 1, 1, 1, 1, 1, 2), _INF, np.float32)] * 2,
    right=np.full((1, 1, 1, 1, 1, 1, 2), _INF),
    wrong=np.full((1, 1, 1, 1, 1, 1, 2), np.finfo(np.float32).max),
    model=lambda b, x, y: b.add(Add, x, y),
)
def infinity_of_seven_axes() -> Node:
    return Node("ADD", options("AddOptions"))


@quirk(
    FloorDiv,
    when="a divisor is 0",
    what="fails",
    avoided_by=limits.known_divisor,
    inputs=[[1, 7], [0, 2]],
    right=[_INF, 3],
    wrong=Raises("Division by 0"),
    model=lambda b, x, y: b.add(FloorDiv, x, y),
)
def floor_of_division_by_zero() -> Node:
    return Node("FLOOR_DIV", options("FloorDivOptions"))
