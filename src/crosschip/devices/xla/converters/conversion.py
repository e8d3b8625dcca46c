"""Conversions of the element type."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from crosschip.devices.xla.converters.table import converts, same
from crosschip.devices.xla.graph import Graph, Value
from crosschip.ops.standard import conversion

converts(conversion.Assign, pointwise=True)(same(lambda x: x))


@converts(conversion.Cast, narrow=True, pointwise=True)
def cast(g: Graph, op: conversion.Cast) -> Value:
    x = g[op.input]
    return x != 0 if op.dtype.dtype == jnp.bool_ else x.astype(op.dtype.dtype)


@converts(conversion.BitCast, narrow=True)
def bit_cast(g: Graph, op: conversion.BitCast) -> Value:
    x = g[op.input]
    bits = x.astype(jnp.uint8) if x.dtype == jnp.bool_ else x
    if op.dtype.dtype == jnp.bool_:
        return lax.bitcast_convert_type(bits, jnp.uint8) != 0
    return lax.bitcast_convert_type(bits, op.dtype.dtype)
