"""Casts from and to bool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, ElementType, Operand
from crosschip.ops.standard.comparison import NotEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.logical import Where
from crosschip.passes.rewrite_operations import constant_like


def unlike_zero(b: Builder, op: Cast) -> Sequence[Operand] | None:
    """Replace a cast to bool by a comparison with 0 (quirk `boolean-of-nan`)."""
    if op.dtype is not ElementType.BOOL:
        return None
    return (b.add(NotEqual, op.input, constant_like(b, op.input, 0)),)


def choice_of_reals(b: Builder, op: Cast) -> Sequence[Operand] | None:
    """Replace a cast of bool to float32 by a choice between 1 and 0.

    OpenVINO takes the product of cast booleans and a mask's -FLT_MAX for a dequantization, and adds
    the following operand, divided by that scale, to the bytes. Quirk `flags-among-bytes`.
    """
    if op.dtype is not ElementType.FLOAT32 or op.input.type.element_type is not ElementType.BOOL:
        return None
    return (b.add(Where, op.input, *(np.array(number, np.float32) for number in (1, 0))),)
