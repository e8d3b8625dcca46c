"""Arithmetic on two tensors or more, and bounds."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import FLOAT_TYPES, MOVABLE, converts, same
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES, INTEGERS
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mod, Mul, Pow, Sub, Sum
from crosschip.ops.standard.conversion import Assign

_NUMBERS = FLOAT_TYPES | INTEGERS
_COMPARABLE = _NUMBERS - {ElementType.INT16, ElementType.UINT16}


def _may_trap(op: Div | Mod) -> bool:
    """Tell whether the processor may trap: on a division by 0, or of the lowest integer by -1."""
    divisor = op.input1.value
    if op.input1.type.element_type in FLOAT_TYPES:
        return False
    return divisor is None or bool(np.isin(divisor, (0, -1)).any())


def _traps(op: Div | Mod) -> Refusal | None:
    element_type = op.input1.type.element_type
    if _may_trap(op) and element_type not in INDICES:
        detail = f"a divisor of {element_type} must be constant, and neither 0 nor -1"
        return Refusal("input1", detail)
    return None


def _without_traps(g: Graph, op: Div | Mod) -> str:
    """The divisor, with 1 in place of 0 and -1."""
    divisor = g[op.input1]
    zero, minus = (g.add("Equal", divisor, g.scalar(n, op.input1)) for n in (0, -1))
    return g.add("Where", g.add("Or", zero, minus), g.scalar(1, op.input1), divisor)


converts(Add, types=_NUMBERS)(same("Add"))
converts(Sub, types=_NUMBERS)(same("Sub"))
converts(Mul, types=_NUMBERS)(same("Mul"))
converts(Max, types=_COMPARABLE)(same("Max"))
converts(Min, types=_COMPARABLE)(same("Min"))
converts(Pow)(same("Pow"))
converts(Sum)(same("Sum"))
converts(Assign, types=MOVABLE)(same("Identity"))


@converts(Div, types=_NUMBERS, limit=_traps)
def div(g: Graph, op: Div) -> str:
    if not _may_trap(op):
        return g.add("Div", g[op.input0], g[op.input1])
    quotient = g.add("Div", g[op.input0], _without_traps(g, op))
    zero, minus = (g.add("Equal", g[op.input1], g.scalar(n, op.input1)) for n in (0, -1))
    quotient = g.add("Where", minus, g.add("Neg", g[op.input0]), quotient)
    return g.add("Where", zero, g.scalar(0, op.input0), quotient)


def _inexact(op: Mod) -> Refusal | None:
    """With `fmod`, ONNX Runtime computes 64-bit integers in float64."""
    element_type = op.input0.type.element_type
    if op.fmod and element_type in (ElementType.INT64, ElementType.UINT64):
        return Refusal("fmod", f"of {element_type} is inexact", Rule.ELEMENT_TYPE)
    return _traps(op)


@converts(Mod, types=_NUMBERS, limit=_inexact)
def mod(g: Graph, op: Mod) -> str:
    dividend, divisor = g[op.input0], g[op.input1]
    if op.fmod or op.input0.type.element_type not in FLOAT_TYPES:
        # By 1, the remainder is 0, as it is by 0 and -1.
        divisor = _without_traps(g, op) if _may_trap(op) else divisor
        return g.add("Mod", dividend, divisor, fmod=int(op.fmod))
    # ONNX has no other remainder of reals than that with the sign of the dividend.
    rest = g.add("Mod", dividend, divisor, fmod=1)
    signs = g.add("Mul", g.add("Sign", rest), g.add("Sign", divisor))
    differ = g.add("Less", signs, g.scalar(0, op.input0))
    return g.add("Where", differ, g.add("Add", rest, divisor), rest)


def _bounded(op: Clip) -> Refusal | None:
    for slot, bound, end in (("min", op.min, np.inf), ("max", op.max, -np.inf)):
        if bound == end:
            return Refusal(slot, f"is {bound:g}")
    return None


@converts(Clip, types=_COMPARABLE, limit=_bounded)
def clip(g: Graph, op: Clip) -> str:
    return g.add("Clip", g[op.input], _bound(g, op.min, op.input), _bound(g, op.max, op.input))


def _bound(g: Graph, bound: float, like: Operand) -> str:
    """A bound of a clip in the element type of what is clipped, as far as that type reaches."""
    if like.type.element_type in FLOAT_TYPES:
        return g.scalar(bound, like)  # without a bound, it clips infinity to the largest number
    if np.isinf(bound):
        return ""
    limits = np.iinfo(like.type.element_type.dtype)
    return g.scalar(min(max(int(bound), limits.min), limits.max), like)
