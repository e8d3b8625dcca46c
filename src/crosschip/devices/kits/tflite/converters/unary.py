"""Functions of one number."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tflite.converters.table import (
    ACTIVATION,
    ANY_BYTES,
    SINGLE,
    WORDS,
    converts,
    fixed_output,
    same,
    shape_of,
    unary_forms,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.activation import Tanh
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul
from crosschip.ops.standard.unary import (
    Abs,
    Atan,
    Ceil,
    Cos,
    Erf,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
)

_SIGNED = SINGLE | {ElementType.INT32}

converts(Abs, types=_SIGNED, quantized=unary_forms(ACTIVATION, WORDS))(same("ABS"))
converts(Neg, types=SINGLE | {ElementType.INT32, ElementType.INT64})(same("NEG"))
converts(Exp, quantized=unary_forms(ACTIVATION, WORDS))(same("EXP"))
converts(Log, quantized=unary_forms(ACTIVATION, WORDS))(same("LOG"))
converts(Sin)(same("SIN"))
converts(Cos)(same("COS"))
converts(Sqrt)(same("SQRT"))
converts(Rsqrt, quantized=unary_forms(ACTIVATION))(same("RSQRT"))
converts(Square)(same("SQUARE"))
converts(Floor)(same("FLOOR"))
converts(Ceil)(same("CEIL"))
converts(Round)(same("ROUND"))
converts(Sign)(same("SIGN"))
converts(
    Tanh,
    limit=fixed_output(2**-7),
    quantized=unary_forms(ANY_BYTES, WORDS),
)(same("TANH"))


@converts(Atan)
def atan(g: Graph, op: Atan) -> Operand:
    ones = g.constant(np.ones(shape_of(op.input), np.float32))
    return g.native("ATAN2", op.input, ones, type=op.outputs[0].type)


_ALPHA = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_BETA = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
"""The coefficients of a rational approximation of the error function for float32, highest first.

Source: Eigen's generic_fast_erf_float.
"""


@converts(Erf)
def erf(g: Graph, op: Erf) -> Operand:
    # The kernels of extremes return the second operand if one is NaN.
    x = g.add(Min, np.float32(4), g.add(Max, np.float32(-4), op.input))
    square = g.add(Mul, x, x)

    def polynomial(coefficients: tuple[float, ...]) -> Operand:
        first, second, *others = map(np.float32, coefficients)
        value = g.add(Add, g.add(Mul, square, first), second)
        for coefficient in others:
            value = g.add(Add, g.add(Mul, value, square), coefficient)
        return value

    return g.add(Div, g.add(Mul, x, polynomial(_ALPHA)), polynomial(_BETA))
