"""Quirks of elementwise operators."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters import (
    activation,
    arithmetic,
)
from crosschip.devices.kits.onnx.lowering.arithmetic import (
    choice_in_wider_type,
    quotient_without_traps,
    remainder_without_traps,
)
from crosschip.devices.kits.quirks import Differs, Raises
from crosschip.devices.onnxruntime.quirks.raw import quirk
from crosschip.hal import Converters
from crosschip.ops.standard.activation import Celu, LogSoftmax
from crosschip.ops.standard.arithmetic import Div, Mod
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.unary import Sign

NAN, INF = np.nan, np.inf


@quirk(
    Celu,
    when="alpha is 0",
    what="divides positive elements by it, too",
    avoided_by=activation.celu,
    inputs=[[0, 1]],
    right=[NAN, 1],
    wrong=[NAN, NAN],
    model=lambda b, x: b.add(Celu, x, 0.0),
)
def celu_of_no_alpha() -> str:
    return "g (float[2] x) => (float[2] y) { y = Celu <alpha: float = 0.0> (x) }"


@quirk(
    LogSoftmax,
    when="an element of float64 is NaN",
    what="loses it",
    avoided_by=activation.along_axis,
    inputs=[np.array([[1.0, NAN]])],
    right=[[NAN, NAN]],
    wrong=Differs(),
    model=lambda b, x: b.add(LogSoftmax, x),
)
def log_softmax_of_nan() -> str:
    return "g (double[1,2] x) => (double[1,2] y) { y = LogSoftmax <axis: int = -1> (x) }"


@quirk(
    Div,
    Mod,
    when="integers are divided by 0",
    what="refuses the run",
    avoided_by=[quotient_without_traps, remainder_without_traps],
    inputs=[np.array([7, 9], np.int32), np.array([0, 3], np.int32)],
    right=[0, 3],
    wrong=Raises("division by zero"),
    model=lambda b, x, y: b.add(Div, x, y),
)
def integers_by_zero() -> str:
    return "g (int32[2] x, int32[2] y) => (int32[2] z) { z = Div (x, y) }"


@quirk(
    Where,
    when="it chooses between integers of int16, uint16 or uint64, or booleans",
    what="has no kernel",
    avoided_by=choice_in_wider_type,
    inputs=[np.array([True, False]), np.array([1, 2], np.uint64), np.array([3, 4], np.uint64)],
    right=[1, 4],
    wrong=Raises("NOT_IMPLEMENTED"),
    model=lambda b, c, x, y: b.add(Where, c, x, y),
)
def choice_between_uint64() -> str:
    return "g (bool[2] c, uint64[2] x, uint64[2] y) => (uint64[2] z) { z = Where (c, x, y) }"


@quirk(
    Sign,
    when="an element of float16 is NaN",
    what="returns 0",
    avoided_by=Converters.supports,
    inputs=[np.array([NAN, -2], np.float16)],
    right=[NAN, -1],
    wrong=[0, -1],
    model=lambda b, x: b.add(Sign, x),
)
def sign_of_nan() -> str:
    return "g (float16[2] x) => (float16[2] y) { y = Sign (x) }"


@quirk(
    Mod,
    when="integers of int64 take the sign of the dividend",
    what="computes in float64",
    avoided_by=arithmetic.mod,
    versions="1.31.1",
    fixed_in="1.32.0",
    inputs=[np.array([2**53 + 1]), np.array([2**53])],
    right=[1],
    wrong=[0],
    model=lambda b, x, y: b.add(Mod, x, y, fmod=True),
)
def remainder_of_int64() -> str:
    return "g (int64[1] x, int64[1] y) => (int64[1] z) { z = Mod <fmod: int = 1> (x, y) }"
