"""Casts."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import converts, narrow_float, same
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.devices.kits.stablehlo.narrow import as_type
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import NARROW_FLOATS, NARROW_INTEGERS
from crosschip.ops.numerics.casting import PowerRounding
from crosschip.ops.standard import conversion

converts(conversion.Assign, pointwise=True)(same(lambda x: x))


@converts(conversion.Cast, narrow=True, pointwise=True)
def cast(g: Graph, op: conversion.Cast) -> Value:
    x = g[op.input]
    if op.input.type.element_type in NARROW_FLOATS:
        x = x.astype(jnp.float32)
    if op.dtype is ElementType.BOOL:
        return x != 0
    if op.dtype is ElementType.FLOAT8E8M0:
        return _powers_of_two(x, op.saturate, op.round_mode)
    if op.dtype in NARROW_FLOATS:
        return narrow_float(x, op.dtype, saturate=op.saturate)
    return as_type(x, op.dtype.dtype)


def _powers_of_two(x: Value, saturate: bool, rounding: PowerRounding) -> Value:
    """Convert to E8M0: the bits are an exponent plus 127; 255 is NaN."""
    reals = x.astype(jnp.float64)
    mantissa, exponent = jnp.frexp(reals)
    # The mantissa is in [0.5, 1): the exponent of the next lower power of 2 is less by one.
    up = {
        PowerRounding.UP: mantissa > 0.5,
        PowerRounding.DOWN: mantissa >= 1,
        PowerRounding.NEAREST: mantissa >= 0.75,
    }[rounding]
    exponent = exponent - 1 + up
    exponent = jnp.where(reals == 0, -128, jnp.where(jnp.isinf(reals), 128, exponent))
    if saturate:
        exponent = jnp.clip(exponent, -127, 127)
    valid = (reals >= 0) & (exponent >= -127) & (exponent <= 127)
    stored = jnp.where(valid, exponent + 127, 255).astype(jnp.uint8)
    return lax.bitcast_convert_type(stored, ElementType.FLOAT8E8M0.dtype)


def _bits_of_integers(op: conversion.BitCast) -> Refusal | None:
    types = {op.input.type.element_type, op.dtype}
    if ElementType.FLOAT4E2M1 in types and types & NARROW_INTEGERS:
        detail = f"the bits of a float4 are not read as those of {op.dtype}, nor the other way"
        return Refusal("dtype", detail, Rule.ELEMENT_TYPE)
    return None


@converts(conversion.BitCast, narrow=True, limit=_bits_of_integers)
def bit_cast(g: Graph, op: conversion.BitCast) -> Value:
    x = g[op.input]
    if op.dtype in NARROW_INTEGERS:
        return as_type(x, op.dtype.dtype)
    bits = x.astype(jnp.uint8) if x.dtype == jnp.bool_ else x
    if op.dtype is ElementType.BOOL:
        return lax.bitcast_convert_type(bits, jnp.uint8) != 0
    return lax.bitcast_convert_type(bits, np.dtype(op.dtype.dtype))
