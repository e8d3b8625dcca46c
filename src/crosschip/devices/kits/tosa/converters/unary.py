"""Elementwise functions of one number."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import NUMBERS, REALS, converts, is_real, unary
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import Op
from crosschip.ops.standard import activation
from crosschip.ops.standard import unary as functions

_DIRECT = {
    functions.Reciprocal: Op.RECIPROCAL,
    functions.Exp: Op.EXP,
    functions.Log: Op.LOG,
    functions.Erf: Op.ERF,
    functions.Floor: Op.FLOOR,
    functions.Ceil: Op.CEIL,
    functions.Sin: Op.SIN,
    functions.Cos: Op.COS,
    activation.Tanh: Op.TANH,
    activation.Sigmoid: Op.SIGMOID,
}
for _operator, _op in _DIRECT.items():
    converts(_operator, types=REALS)(unary(_op))

converts(functions.Abs, types=NUMBERS)(unary(Op.ABS))
_ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
"""Coefficients for |x| <= tan(pi / 8) (Moshier, Cephes, atanf)."""


@converts(functions.Neg, types=NUMBERS)
def neg(g: Graph, op: functions.Neg) -> Value:
    value = g[op.input]
    return (
        g.unary(Op.NEGATE, value) if is_real(op.input) else g.difference(g.number(0, value), value)
    )


@converts(functions.Sqrt, types=REALS)
def sqrt(g: Graph, op: functions.Sqrt) -> Value:
    return _sqrt(g, g[op.input])


@converts(functions.Rsqrt, types=REALS)
def rsqrt(g: Graph, op: functions.Rsqrt) -> Value:
    value = g[op.input]
    negative = g.greater(g.number(0, value), value)
    root = g.unary(Op.RSQRT, g.unary(Op.ABS, value))
    return g.select(negative, g.number(np.nan, value), root)


def _sqrt(g: Graph, value: Value) -> Value:
    """Return square roots; those of negative numbers are NaN, which POW leaves open."""
    negative = g.greater(g.number(0, value), value)
    root = g.binary(Op.POW, g.unary(Op.ABS, value), g.number(0.5, value))
    return g.select(negative, g.number(np.nan, value), root)


@converts(functions.Round, types=REALS)
def round_(g: Graph, op: functions.Round) -> Value:
    return g.round(g[op.input])


@converts(functions.Atan, types=REALS)
def atan(g: Graph, op: functions.Atan) -> Value:
    value = g[op.input]
    size = g.unary(Op.ABS, value)
    far = g.greater(size, g.number(np.tan(3 * np.pi / 8), size))
    middle = g.greater(size, g.number(np.tan(np.pi / 8), size))
    one = g.number(1, size)
    near_one = g.quotient(g.difference(size, one), g.sum(size, one))
    inverse = g.unary(Op.NEGATE, g.unary(Op.RECIPROCAL, size))
    x = g.select(far, inverse, g.select(middle, near_one, size))
    angle = g.select(
        far,
        g.number(np.pi / 2, size),
        g.select(middle, g.number(np.pi / 4, size), g.number(0, size)),
    )
    square = g.product(x, x)
    series = g.number(_ATAN[0], x)
    for coefficient in _ATAN[1:]:
        series = g.sum(g.product(series, square), g.number(coefficient, x))
    result = g.sum(angle, g.sum(g.product(g.product(series, square), x), x))
    return g.select(g.greater(g.number(0, value), value), g.unary(Op.NEGATE, result), result)
