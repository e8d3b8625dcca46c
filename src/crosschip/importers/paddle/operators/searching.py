"""Operators that find the greatest or least elements."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import ElementType
from crosschip.ops import Operator
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.searching import ArgMax, ArgMin, TopK

_EXTREMES: dict[str, type[Operator]] = {"arg_max": ArgMax, "arg_min": ArgMin}


def _extreme(operator: type[Operator]) -> Callable[[Context], None]:
    def find(op: Context) -> None:
        x, keepdim = op.input(), op.flag("keepdims", False)
        dtype = op.element_type("dtype") or ElementType.INT64
        if not op.flag("flatten", False):
            op.make(operator, x, op.integer("axis", -1), keepdim=keepdim, dtype=dtype)
            return
        place = op.add(operator, op.add(Reshape, x, (-1,)), 0, keepdim=False, dtype=dtype)
        op.make(Reshape, place, (1,) * op.rank(x) if keepdim else ())

    return find


for _name, _operator in _EXTREMES.items():
    imports(_name)(_extreme(_operator))


@imports("top_k", "top_k_v2")
def top_k(op: Context) -> None:
    op.make_each(
        TopK,
        op.input(),
        op.integer_or_tensor("k", 1, "K"),
        axis=op.integer("axis", -1),
        largest=op.flag("largest", True),
        sorted=op.flag("sorted", True),
        return_indices_dtype=ElementType.INT64,
        outputs=("Out", "Indices"),
    )
