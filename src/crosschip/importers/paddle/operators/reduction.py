"""Operators that reduce axes to one value each."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.reduction import (
    CumSum,
    ReduceAll,
    ReduceAny,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)

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
        axes = () if op.flag("reduce_all", False) else op.integers("dim", ())
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
    x, axis = op.input(), op.integer("axis", -1)
    if op.flag("flatten", False):
        x, axis = op.add(Reshape, x, (-1,)), 0
    exclusive, reverse = op.flag("exclusive", False), op.flag("reverse", False)
    op.make(CumSum, x, axis, exclusive=exclusive, reverse=reverse)


@imports("logsumexp")
def logsumexp(op: Context) -> None:
    axes = () if op.flag("reduce_all", False) else op.integers("axis", ())
    op.make(ReduceLogSumExp, op.input(), axes, keepdim=op.flag("keepdim", False))
