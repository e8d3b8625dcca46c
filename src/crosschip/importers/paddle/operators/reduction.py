"""Operators that reduce axes to one value each."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.conversion import Cast
from crosschip.ops.reduction import ReduceMax, ReduceMean, ReduceSum

_REDUCTIONS = {"reduce_mean": ReduceMean, "reduce_sum": ReduceSum, "reduce_max": ReduceMax}


def _reduction(operator: type[Operator]) -> Callable[[Context], None]:
    def reduce(op: Context) -> None:
        axes = () if op.flag("reduce_all", False) else op.integers("dim", ())
        op.make(operator, _input(op), axes, keepdim=op.flag("keep_dim", False))

    return reduce


def _input(op: Context) -> Operand:
    """The input in the element type of the result; Paddle sums up int32 in int64."""
    x = op.input()
    asked = op.element_type("out_dtype")
    if asked in (None, x.type.element_type):
        return x
    return op.add(Cast, x, asked)


for _name, _operator in _REDUCTIONS.items():
    imports(_name)(_reduction(_operator))
