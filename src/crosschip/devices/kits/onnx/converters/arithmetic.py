"""Arithmetic operators with two or more operands, and `CLIP`."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import FLOAT_TYPES, MOVABLE, converts, same
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.devices.kits.onnx.lowering.arithmetic import may_trap
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES, INTEGERS
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mod, Mul, Pow, Sub, Sum
from crosschip.ops.standard.conversion import Assign

_NUMBERS = FLOAT_TYPES | INTEGERS
_COMPARABLE = _NUMBERS - {ElementType.INT16, ElementType.UINT16}


def _div_limit(op: Div | Mod) -> Refusal | None:
    element_type = op.input1.type.element_type
    if may_trap(op) and element_type not in INDICES:
        detail = f"a divisor of {element_type} must be constant, and neither 0 nor -1"
        return Refusal("input1", detail)
    return None


converts(Add, types=_NUMBERS)(same("Add"))
converts(Sub, types=_NUMBERS)(same("Sub"))
converts(Mul, types=_NUMBERS)(same("Mul"))
converts(Max, types=_COMPARABLE)(same("Max"))
converts(Min, types=_COMPARABLE)(same("Min"))
converts(Pow)(same("Pow"))
converts(Sum)(same("Sum"))
converts(Assign, types=MOVABLE)(same("Identity"))


converts(Div, types=_NUMBERS, limit=_div_limit)(same("Div"))


def _mod_limit(op: Mod) -> Refusal | None:
    """Refuse 64-bit `fmod`: ONNX Runtime computes it in float64 (quirk `remainder-of-int64`)."""
    element_type = op.input0.type.element_type
    if op.fmod and element_type in (ElementType.INT64, ElementType.UINT64):
        return Refusal("fmod", f"of {element_type} is inexact", Rule.ELEMENT_TYPE)
    return _div_limit(op)


@converts(Mod, types=_NUMBERS, limit=_mod_limit)
def mod(g: Graph, op: Mod) -> str:
    return g.add("Mod", g[op.input0], g[op.input1], fmod=int(op.fmod))


def _clip_limit(op: Clip) -> Refusal | None:
    for slot, bound, end in (("min", op.min, np.inf), ("max", op.max, -np.inf)):
        if bound == end:
            return Refusal(slot, f"is {bound:g}")
    return None


@converts(Clip, types=_COMPARABLE, limit=_clip_limit)
def clip(g: Graph, op: Clip) -> str:
    return g.add("Clip", g[op.input], _bound(g, op.min, op.input), _bound(g, op.max, op.input))


def _bound(g: Graph, bound: float, like: Operand) -> str:
    """Return a bound of `CLIP` in the input's element type, clipped to its range."""
    if like.type.element_type in FLOAT_TYPES:
        return g.scalar(bound, like)  # ONNX's default bound is the largest finite number
    if np.isinf(bound):
        return ""
    limits = np.iinfo(like.type.element_type.dtype)
    return g.scalar(min(max(int(bound), limits.min), limits.max), like)
