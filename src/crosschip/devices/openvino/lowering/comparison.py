"""Comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Builder, Operand
from crosschip.ops.standard.comparison import Greater, GreaterEqual, Less, LessEqual


def swap_operands(b: Builder, op: Greater | GreaterEqual) -> Sequence[Operand]:
    """Swap the operands of a comparison: `Greater` and `GreaterEqual` return true for NaN.

    Quirks `greater-than-nan`, `greater-or-equal-to-nan`.
    """
    less = Less if isinstance(op, Greater) else LessEqual
    return (b.add(less, op.input1, op.input0),)
