"""Conversions from and to bool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, ElementType, Operand
from crosschip.ops.standard.comparison import NotEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.logical import Where
from crosschip.passes.rewrite_operations import constant_like


def unlike_zero(b: Builder, op: Cast) -> Sequence[Operand] | None:
    """Compare with 0 in place of a conversion to bool, in which OpenVINO takes NaN for false.

    Quirk `boolean-of-nan`.
    """
    if op.dtype is not ElementType.BOOL:
        return None
    return (b.add(NotEqual, op.input, constant_like(b, op.input, 0)),)


def choice_of_reals(b: Builder, op: Cast) -> Sequence[Operand] | None:
    """Choose 1 or 0 in place of a conversion of bool to float32.

    Flags are bytes to OpenVINO, and the product of converted ones with a mask's -FLT_MAX a
    dequantization: it would add what follows to the bytes, divided by that, which makes nothing of
    it.

    Quirk `flags-among-bytes`.
    """
    if op.dtype is not ElementType.FLOAT32 or op.input.type.element_type is not ElementType.BOOL:
        return None
    return (b.add(Where, op.input, *(np.array(number, np.float32) for number in (1, 0))),)
