"""Arithmetic on two tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, Operand
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.kinds import Broadcast
from crosschip.ops.standard.arithmetic import Div, Mod, Mul
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.logical import And, Not, Where
from crosschip.ops.standard.unary import IsInf, Sign
from crosschip.passes.rewrite_operations import constant_like, rebuild

_LOST_BESIDE = 2.0**15
"""The magnitude of a constant from which sums lose most digits of usual numbers."""


def with_axes_of_constant(b: Builder, op: Broadcast) -> Sequence[Operand] | None:
    """Add missing axes to an operand of a constant of higher rank, which fusion may drop."""
    first, second = _align_ranks(b, op.input0, op.input1), _align_ranks(b, op.input1, op.input0)
    if first is op.input0 and second is op.input1:
        return None
    return (rebuild(b, op, input0=first, input1=second),)


def _align_ranks(b: Builder, operand: Operand, other: Operand) -> Operand:
    missing = len(other.type.shape or ()) - len(operand.type.shape or ())
    if missing > 0 and other.is_constant and not operand.is_constant:
        return b.add(Unsqueeze, operand, range(missing))
    return operand


def product_of_zero(b: Builder, op: Mul) -> Sequence[Operand] | None:
    """Keep OpenVINO from reordering a product by a large constant, such as a mask.

    `(1 - mask) * large + x` would become `-mask * large + (large + x)`. Quirk `product-beside-sum`.
    """
    factor, other = (op.input0, op.input1) if op.input0.is_constant else (op.input1, op.input0)
    if op.input0.type.element_type not in FLOATS or not _is_large(factor):
        return None
    zero = constant_like(b, other, 0)
    return (b.add(Where, b.add(Equal, other, zero), zero, rebuild(b, op)),)


def _is_large(operand: Operand) -> bool:
    if operand.value is None:
        return False
    largest = np.abs(operand.value).max(initial=0)
    return bool(np.isfinite(largest) and largest >= _LOST_BESIDE)


def zero_for_zero_divisors(b: Builder, op: Div | Mod) -> Sequence[Operand] | None:
    """Divide integers by 1 instead of 0, and return 0 there (quirk `integers-by-zero`)."""
    divisor = op.input1
    if op.input0.type.element_type in FLOATS:
        return None
    if divisor.value is not None and divisor.value.all():
        return None
    zero = constant_like(b, divisor, 0)
    is_zero = b.add(Equal, divisor, zero)
    safe = b.add(Where, is_zero, constant_like(b, divisor, 1), divisor)
    return (b.add(Where, is_zero, zero, rebuild(b, op, input1=safe)),)


def remainder_of_infinite_divisors(b: Builder, op: Mod) -> Sequence[Operand] | None:
    """Compute the remainder for infinite divisors separately (quirk `remainder-by-infinity`)."""
    dividend, divisor = op.input0, op.input1
    if dividend.type.element_type not in FLOATS:
        return None
    if divisor.value is not None and not np.isinf(divisor.value).any():
        return None
    is_far = b.add(And, b.add(IsInf, divisor), b.add(Not, b.add(IsInf, dividend)))
    remainder = dividend
    if not op.fmod:
        signs = b.add(Mul, b.add(Sign, dividend), b.add(Sign, divisor))
        is_other = b.add(Less, signs, constant_like(b, dividend, 0))
        remainder = b.add(Where, is_other, divisor, dividend)
    return (b.add(Where, is_far, remainder, rebuild(b, op)),)
