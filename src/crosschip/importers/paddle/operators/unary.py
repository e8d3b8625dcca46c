"""Functions of one number, element by element."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import (
    Add,
    Mul,
    Sub,
)
from crosschip.ops.standard.comparison import GreaterEqual
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
    """The nearest whole number; of two, the one that is farther from 0."""
    x = op.input()
    size = op.add(Abs, x)
    below = op.add(Floor, size)
    is_above = op.add(GreaterEqual, op.add(Sub, size, below), 0.5)
    nearest = op.add(Add, below, op.as_type(is_above, x.type.element_type))
    op.make(Mul, op.add(Sign, x), nearest)


@imports("pd_op.round")
def round_of_paddle3(op: Context) -> None:
    """The nearest whole number; of two, the even one."""
    op.expect("decimals", 0)
    op.make(Round, op.input())
