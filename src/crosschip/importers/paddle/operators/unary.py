"""Elementwise functions of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable

from crosschip.importers.paddle.context import Context, imports
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Softplus, Tanh
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mul, Sub
from crosschip.ops.standard.comparison import Equal, GreaterEqual, Less
from crosschip.ops.standard.logical import Not, Or, Where
from crosschip.ops.standard.unary import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Cos,
    Cosh,
    Erf,
    Exp,
    Floor,
    IsInf,
    IsNaN,
    Log,
    Neg,
    Reciprocal,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Square,
    Tan,
)

_UNARY: dict[str, type[Operator]] = {
    "abs": Abs,
    "acos": Acos,
    "acosh": Acosh,
    "asin": Asin,
    "asinh": Asinh,
    "atan": Atan,
    "atanh": Atanh,
    "ceil": Ceil,
    "cos": Cos,
    "cosh": Cosh,
    "erf": Erf,
    "exp": Exp,
    "floor": Floor,
    "isinf_v2": IsInf,
    "isnan_v2": IsNaN,
    "log": Log,
    "reciprocal": Reciprocal,
    "rsqrt": Rsqrt,
    "sign": Sign,
    "sin": Sin,
    "sinh": Sinh,
    "sqrt": Sqrt,
    "square": Square,
    "tan": Tan,
}


def _unary(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, op.input())


for _name, _operator in _UNARY.items():
    imports(_name)(_unary(_operator))


@imports("round")
def round(op: Context) -> None:
    """Round to nearest, halves away from 0."""
    x = op.input()
    size = op.add(Abs, x)
    below = op.add(Floor, size)
    is_above = op.add(GreaterEqual, op.add(Sub, size, below), 0.5)
    nearest = op.add(Add, below, op.as_type(is_above, x.type.element_type))
    op.make(Mul, op.add(Sign, x), nearest)


@imports("pd_op.round")
def round_of_paddle3(op: Context) -> None:
    """Round to nearest, halves to even."""
    op.expect("decimals", 0)
    op.make(Round, op.input())


@imports("log2", "log10")
def log_to_base(op: Context) -> None:
    """Import `log2` and `log10`: the logarithm to base 2 or 10, `log(x) / log(base)`."""
    op.make(Div, op.add(Log, op.input()), math.log(2 if op.kind == "log2" else 10))


@imports("log1p")
def log1p(op: Context) -> None:
    """`log(1 + x)`, accurate for small `x`."""
    x = op.input()
    one = x.type.element_type.dtype.type(1)
    larger = op.add(Add, x, one)
    rounded = op.add(Sub, larger, one)
    # Kahan: the factor x / rounded corrects the rounding of 1 + x.
    is_zero = op.add(Equal, rounded, x.type.element_type.dtype.type(0))
    factor = op.add(Div, x, op.add(Where, is_zero, one, rounded))
    result = op.add(Mul, op.add(Log, larger), factor)
    result = op.add(Where, is_zero, x, result)
    is_infinite = op.add(IsInf, x)
    op.make(Where, is_infinite, op.add(Log, x), result)


@imports("expm1")
def expm1(op: Context) -> None:
    """`e ** x - 1`, computed as `tanh(x / 2) * (e ** x + 1)` for `|x| < 1`."""
    x = op.input()
    one = x.type.element_type.dtype.type(1)
    power = op.add(Exp, x)
    near = op.add(Mul, op.add(Tanh, op.add(Mul, x, 0.5)), op.add(Add, power, one))
    is_near = op.add(Less, op.add(Abs, x), one)
    op.make(Where, is_near, near, op.add(Sub, power, one))


@imports("logsigmoid")
def logsigmoid(op: Context) -> None:
    op.make(Neg, op.add(Softplus, op.add(Neg, op.input()), 1.0, math.inf))


@imports("tanh_shrink")
def tanh_shrink(op: Context) -> None:
    x = op.input()
    op.make(Sub, x, op.add(Tanh, x))


@imports("stanh")
def stanh(op: Context) -> None:
    inner = op.add(Tanh, op.add(Mul, op.input(), op.real("scale_a", 0.67)))
    op.make(Mul, inner, op.real("scale_b", 1.7159))


@imports("trunc")
def trunc(op: Context) -> None:
    """Round toward 0."""
    x = op.input()
    if x.type.element_type in FLOATS:
        op.make(Mul, op.add(Sign, x), op.add(Floor, op.add(Abs, x)))
    else:
        op.define(x)


@imports("isfinite_v2")
def isfinite_v2(op: Context) -> None:
    x = op.input()
    op.make(Not, op.add(Or, op.add(IsNaN, x), op.add(IsInf, x)))


@imports("logit")
def logit(op: Context) -> None:
    """`log(x / (1 - x))`; a nonzero `eps` clips `x` to [eps, 1 - eps]."""
    x, eps = op.input(), op.real("eps", 1e-6)
    one = x.type.element_type.dtype.type(1)
    clipped = op.add(Clip, x, eps, 1 - eps) if eps else x
    op.make(Log, op.add(Div, clipped, op.add(Sub, one, clipped)))
