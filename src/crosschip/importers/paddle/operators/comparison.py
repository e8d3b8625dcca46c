"""Elementwise comparisons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.importers.paddle.axes import broadcast_inputs
from crosschip.importers.paddle.context import Context, imports
from crosschip.ops import Operator
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.reduction import ReduceProd

_COMPARISONS: dict[str, type[Operator]] = {
    "equal": Equal,
    "not_equal": NotEqual,
    "less_than": Less,
    "less_equal": LessEqual,
    "greater_than": Greater,
    "greater_equal": GreaterEqual,
}


def _comparison(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, *broadcast_inputs(op))


for _name, _operator in _COMPARISONS.items():
    imports(_name)(_comparison(_operator))


@imports("is_empty")
def is_empty(op: Context) -> None:
    """Import `is_empty`: whether a tensor has no elements."""
    sizes = op.add(ShapeOf, op.input())
    op.make(Equal, op.add(ReduceProd, sizes, (), keepdim=False), np.int64(0))
