"""Operations along an axis of a tensor that may have no axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosschip.importers.paddle.context import Context
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.standard.layout import Reshape


def make_along(
    op: Context,
    operator: type[Operator],
    x: Operand,
    *arguments: object,
    outputs: Sequence[str] = ("Out",),
    **named: Any,
) -> None:
    """Build the operation that makes one variable in each output slot, along an axis.

    To Paddle, a tensor without axes has one of size 1: 0 and -1 name it.
    """
    if x.type.shape != ():
        op.make_each(operator, x, *arguments, outputs=outputs, **named)
        return
    made = op.add_all(operator, op.add(Reshape, x, (1,)), *arguments, **named)
    for operand, output in zip(made, outputs, strict=True):
        if op.count(output):
            op.make(Reshape, operand, (), output=output)
