"""Operators that reduce axes to one value each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Pow
from crosschip.ops.standard.comparison import NotEqual
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.reduction import (
    CumSum,
    ReduceAll,
    ReduceAny,
    ReduceL1,
    ReduceL2,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from crosschip.ops.standard.unary import Abs

_REDUCTIONS: dict[str, type[Operator]] = {
    "reduce_mean": ReduceMean,
    "reduce_sum": ReduceSum,
    "reduce_max": ReduceMax,
    "reduce_min": ReduceMin,
    "reduce_prod": ReduceProd,
    "reduce_all": ReduceAll,
    "reduce_any": ReduceAny,
}


def _reduction(operator: type[Operator]) -> Callable[[Context], None]:
    def reduce(op: Context) -> None:
        is_all = op.flag("reduce_all", False) or op.input().type.shape == ()
        axes = () if is_all else op.integers("dim", ())
        op.make(operator, _input(op), axes, keepdim=op.flag("keep_dim", False))

    return reduce


def _input(op: Context) -> Operand:
    """The input in the element type of the result; Paddle sums up int32 in int64."""
    x = op.input()
    return op.as_type(x, op.element_type("out_dtype") or x.type.element_type)


for _name, _operator in _REDUCTIONS.items():
    imports(_name)(_reduction(_operator))


@imports("cumsum")
def cumsum(op: Context) -> None:
    """Sums up to each element; Paddle gives a lone one back even if it is exclusive."""
    x, axis = op.input(), op.integer("axis", -1)
    is_alone = x.type.static_shape is not None and math.prod(x.type.static_shape) == 1
    if op.flag("flatten", False):
        x, axis = op.add(Reshape, x, (-1,)), 0
    if is_alone:
        op.define(x)
    else:
        exclusive, reverse = op.flag("exclusive", False), op.flag("reverse", False)
        op.make(CumSum, x, axis, exclusive=exclusive, reverse=reverse)


@imports("logsumexp")
def logsumexp(op: Context) -> None:
    axes = () if op.flag("reduce_all", False) else op.integers("axis", ())
    op.make(ReduceLogSumExp, op.input(), axes, keepdim=op.flag("keepdim", False))


@imports("mean")
def mean(op: Context) -> None:
    op.make(ReduceMean, op.input(), (), keepdim=False)


@imports("p_norm")
def p_norm(op: Context) -> None:
    """`sum(|x| ** p) ** (1 / p)`; if `p` is infinite the greatest or least, if 0 a count."""
    x, order = op.input(), op.real("porder", 2.0)
    axes = () if op.flag("asvector", False) else (op.integer("axis", -1),)
    arguments: dict[str, Any] = {"axes": axes, "keepdim": op.flag("keepdim", False)}
    if order == 0.0:
        is_something = op.as_type(op.add(NotEqual, x, 0.0), x.type.element_type)
        op.make(ReduceSum, is_something, **arguments)
    elif math.isinf(order):
        op.make(ReduceMax if order > 0 else ReduceMin, op.add(Abs, x), **arguments)
    elif order == 1.0:
        op.make(ReduceL1, x, **arguments)
    elif order == 2.0:
        op.make(ReduceL2, x, **arguments)
    else:
        total = op.add(ReduceSum, op.add(Pow, op.add(Abs, x), order), **arguments)
        op.make(Pow, total, 1 / order)
