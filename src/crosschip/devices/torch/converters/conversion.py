"""Casts."""

from __future__ import annotations

from functools import lru_cache

import ml_dtypes
import numpy as np
import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts, same
from crosschip.devices.torch.elements import inner, of_array, wrapped
from crosschip.ir import ElementType
from crosschip.ir.types import ALL_TYPES, NARROW_FLOATS, NARROW_INTEGERS
from crosschip.ops.numerics.casting import PowerRounding
from crosschip.ops.standard import conversion

converts(conversion.Assign)(same(lambda x: x))

_SIGN = 2**63


@converts(conversion.Cast, types=ALL_TYPES, narrow=True)
def cast(op: conversion.Cast) -> Kernel:
    source, target = op.input.type.element_type, op.dtype
    saturate, rounding = op.saturate, op.round_mode

    def run(x: torch.Tensor) -> torch.Tensor:
        if source is target:
            return x
        x = numbers(x, source)
        if target is ElementType.BOOL:
            return x != 0
        if target is ElementType.FLOAT8E8M0:
            return _powers_of_two(x, saturate, rounding)
        if target in NARROW_FLOATS:
            return narrow_float(x, target, saturate=saturate)
        if target is ElementType.UINT64 and x.is_floating_point():
            return _unsigned(x)
        return wrapped(x, target)

    return run


def numbers(x: torch.Tensor, element_type: ElementType) -> torch.Tensor:
    """Return the values of a tensor, narrow floats as float32 and uint64 as itself or a float64."""
    if element_type in NARROW_FLOATS:
        return _values(element_type, x.device)[x.long()]
    return x


def narrow_float(x: torch.Tensor, target: ElementType, *, saturate: bool = True) -> torch.Tensor:
    """Return the bits of the nearest floats of at most 8 bits, clamped to them if `saturate`."""
    reals = x if x.dtype is torch.float64 else x.float()
    if saturate:
        limits = ml_dtypes.finfo(target.dtype)  # type: ignore[no-untyped-call]
        reals = torch.clamp(reals, float(limits.min), float(limits.max))
    array = reals.cpu().numpy().astype(target.dtype).view(np.uint8)
    return torch.from_numpy(array).to(x.device)


@lru_cache(maxsize=64)
def _values(element_type: ElementType, device: torch.device) -> torch.Tensor:
    """Return the value of each pattern of 8 bits."""
    with np.errstate(all="ignore"):
        values = np.arange(256, dtype=np.uint8).view(element_type.dtype).astype(np.float32)
    return of_array(values).to(device)


def _unsigned(x: torch.Tensor) -> torch.Tensor:
    """Convert reals to uint64, as the int64 of the same bits."""
    high = x >= _SIGN
    return torch.where(high, x - _SIGN, x).to(torch.int64) ^ torch.where(high, -_SIGN, 0)


def _powers_of_two(x: torch.Tensor, saturate: bool, rounding: PowerRounding) -> torch.Tensor:
    """Convert to E8M0: the bits are an exponent plus 127; 255 is NaN."""
    reals = x.double()
    mantissa, exponent = torch.frexp(reals)
    # The mantissa is in [0.5, 1): the exponent of the next lower power of 2 is less by one.
    up = {
        PowerRounding.UP: mantissa > 0.5,
        PowerRounding.DOWN: mantissa >= 1,
        PowerRounding.NEAREST: mantissa >= 0.75,
    }[rounding]
    exponent = exponent - 1 + up
    exponent = torch.where(reals == 0, -128, torch.where(torch.isinf(reals), 128, exponent))
    if saturate:
        exponent = torch.clamp(exponent, -127, 127)
    valid = (reals >= 0) & (exponent >= -127) & (exponent <= 127)
    return torch.where(valid, exponent + 127, 255).to(torch.uint8)


@converts(conversion.BitCast, types=ALL_TYPES, narrow=True)
def bit_cast(op: conversion.BitCast) -> Kernel:
    source, target = op.input.type.element_type, op.dtype

    def run(x: torch.Tensor) -> torch.Tensor:
        if source is target:
            return x
        bits = wrapped(x, source) if source in _TO_VIEW else x
        if source in _TO_VIEW:
            bits = bits.to(getattr(torch, source.value))
        if target is ElementType.BOOL:
            return bits.view(torch.uint8) != 0
        if target in NARROW_INTEGERS:
            return wrapped(bits.view(inner(target)), target)
        if target is ElementType.FLOAT4E2M1:
            return torch.bitwise_and(bits.view(torch.uint8), 15)
        if target in _TO_VIEW:
            return bits.view(getattr(torch, target.value)).to(inner(target))
        return bits.view(inner(target))

    return run


_TO_VIEW = frozenset({ElementType.UINT16, ElementType.UINT32})
"""The types whose inner form has more bits than they have."""
