"""Rewrites of arithmetic and `WHERE`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, ElementType, Operand
from crosschip.ir.types import FLOATS
from crosschip.ops.standard.arithmetic import Add, Div, Mod, Mul
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.logical import Or, Where
from crosschip.ops.standard.unary import Neg, Sign
from crosschip.passes.rewrite_operations import constant_like, rebuild

_WIDER_TYPES = {
    ElementType.BOOL: ElementType.UINT8,
    ElementType.INT16: ElementType.INT32,
    ElementType.UINT16: ElementType.INT32,
    ElementType.UINT64: ElementType.INT64,
}
"""Wider types for the types that ONNX Runtime's `Where` does not support."""


def may_trap(op: Div | Mod) -> bool:
    """Return whether the processor may trap: division by 0, or of the lowest integer by -1."""
    divisor = op.input1.value
    if op.input1.type.element_type in FLOATS:
        return False
    return divisor is None or bool(np.isin(divisor, (0, -1)).any())


def quotient_without_traps(b: Builder, op: Div) -> Sequence[Operand] | None:
    """Divide integers by 1 instead of 0 and -1, where the run fails or the process ends.

    Quirk `integers-by-zero`.
    """
    if not may_trap(op):
        return None
    is_zero, is_minus, safe = _without_traps(b, op)
    quotient = b.add(Where, is_minus, b.add(Neg, op.input0), rebuild(b, op, input1=safe))
    return (b.add(Where, is_zero, constant_like(b, op.input0, 0), quotient),)


def remainder_without_traps(b: Builder, op: Mod) -> Sequence[Operand] | None:
    """Take the remainder by 1 instead of 0 and -1: all of them are 0.

    Quirk `integers-by-zero`.
    """
    if not may_trap(op):
        return None
    _, _, safe = _without_traps(b, op)
    return (rebuild(b, op, input1=safe),)


def _without_traps(b: Builder, op: Div | Mod) -> tuple[Operand, Operand, Operand]:
    """Return where the divisor is 0, where it is -1, and the divisor with 1 instead."""
    divisor = op.input1
    is_zero, is_minus = (b.add(Equal, divisor, constant_like(b, divisor, n)) for n in (0, -1))
    one = constant_like(b, divisor, 1)
    return is_zero, is_minus, b.add(Where, b.add(Or, is_zero, is_minus), one, divisor)


def remainder_with_sign_of_divisor(b: Builder, op: Mod) -> Sequence[Operand] | None:
    """Correct the sign: ONNX's remainder of reals has the dividend's."""
    if op.fmod or op.input0.type.element_type not in FLOATS:
        return None
    remainder = rebuild(b, op, fmod=True)
    signs = b.add(Mul, b.add(Sign, remainder), b.add(Sign, op.input1))
    differ = b.add(Less, signs, constant_like(b, op.input0, 0))
    return (b.add(Where, differ, b.add(Add, remainder, op.input1), remainder),)


def choice_in_wider_type(b: Builder, op: Where) -> Sequence[Operand] | None:
    """Convert the operands of `WHERE` to a wider type that ONNX Runtime supports.

    Quirk `choice-between-uint64`.
    """
    element_type = op.input0.type.element_type
    if element_type not in _WIDER_TYPES:
        return None
    input0, input1 = (
        b.add(Cast, operand, _WIDER_TYPES[element_type]) for operand in (op.input0, op.input1)
    )
    return (b.add(Cast, rebuild(b, op, input0=input0, input1=input1), element_type),)
