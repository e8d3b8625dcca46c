"""The table itself, and the forms of tensors that its functions take."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.hal import Converters, Refusal, Rule
from crosschip.hal.converters import Form, Scheme
from crosschip.ir import ElementType
from crosschip.ops import Operator
from fake_npu.assembly import Assembly
from fake_npu.forms import BYTES, REALS

BYTE = Scheme(BYTES)
"""Bytes with one scale and one zero point for the whole tensor: all that the chip has."""

MOVED = REALS | BYTES
"""The types of what is only moved."""

converters: Converters[Assembly, int] = Converters(types=REALS, fuses=True)


def bytes_in(*slots: str) -> Sequence[Form]:
    """The quantized form in which these slots and the output are bytes."""
    return [dict.fromkeys((*slots, "output"), BYTE)]


def weighted(input: str, weight: str) -> Sequence[Form]:
    """The quantized forms of a product with weights: with a bias of integers, or of none."""
    forms = bytes_in(input, weight)
    return [*forms, *({**form, "bias": Scheme(frozenset({ElementType.INT32}))} for form in forms)]


def constant(op: Operator, *slots: str) -> Refusal | None:
    """Weights are part of a program."""
    for slot in slots:
        operand = op.operand(slot)
        if operand is not None and not operand.is_constant:
            return Refusal(
                slot, "is computed at run time, but must be constant here", Rule.COMPUTED
            )
    return None
