"""Elementwise functions of one operand."""

from __future__ import annotations

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import WITH_UINT64, converts, same
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import unary

_FUNCTIONS: dict[type[Operator], Kernel] = {
    unary.Abs: torch.abs,
    unary.Sqrt: torch.sqrt,
    unary.Rsqrt: torch.rsqrt,
    unary.Reciprocal: torch.reciprocal,
    unary.Exp: torch.exp,
    unary.Log: torch.log,
    unary.Erf: torch.erf,
    unary.Floor: torch.floor,
    unary.Ceil: torch.ceil,
    unary.Round: torch.round,
    unary.Sin: torch.sin,
    unary.Cos: torch.cos,
    unary.Tan: torch.tan,
    unary.Asin: torch.asin,
    unary.Acos: torch.acos,
    unary.Atan: torch.atan,
    unary.Sinh: torch.sinh,
    unary.Cosh: torch.cosh,
    unary.Asinh: torch.asinh,
    unary.Acosh: torch.acosh,
    unary.Atanh: torch.atanh,
    unary.IsNaN: torch.isnan,
}

for _operator, _function in _FUNCTIONS.items():
    converts(_operator)(same(_function))

converts(unary.Neg, types=WITH_UINT64)(same(torch.neg))
converts(unary.Square, types=WITH_UINT64)(same(torch.square))


@converts(unary.Sign)
def sign(op: unary.Sign) -> Kernel:
    if op.input.type.element_type.dtype.kind in "iu":
        return torch.sign
    return lambda x: torch.where(torch.isnan(x), x, torch.sign(x))


@converts(unary.IsInf)
def is_inf(op: unary.IsInf) -> Kernel:
    if op.detect_negative and op.detect_positive:
        return torch.isinf
    if not (op.detect_negative or op.detect_positive):
        return lambda x: torch.zeros_like(x, dtype=torch.bool)
    return torch.isneginf if op.detect_negative else torch.isposinf
