"""Boolean and bitwise operators."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import converts, same
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard import logical
from crosschip.ops.standard.logical import ShiftDirection

converts(logical.Not, pointwise=True)(same(jnp.logical_not))
converts(logical.And, pointwise=True)(same(jnp.logical_and))
converts(logical.Or, pointwise=True)(same(jnp.logical_or))
converts(logical.Xor, pointwise=True)(same(jnp.logical_xor))
converts(logical.Where, pointwise=True)(same(jnp.where))
converts(logical.BitwiseNot, pointwise=True)(same(jnp.bitwise_not))
converts(logical.BitwiseAnd, pointwise=True)(same(jnp.bitwise_and))
converts(logical.BitwiseOr, pointwise=True)(same(jnp.bitwise_or))
converts(logical.BitwiseXor, pointwise=True)(same(jnp.bitwise_xor))


@converts(logical.BitShift, pointwise=True)
def bit_shift(g: Graph, op: logical.BitShift) -> Value:
    bits, shifts = jnp.broadcast_arrays(g[op.input0], g[op.input1])
    if op.direction is ShiftDirection.LEFT:
        return lax.shift_left(bits, shifts)
    if jnp.issubdtype(bits.dtype, jnp.unsignedinteger):
        return lax.shift_right_logical(bits, shifts)
    return lax.shift_right_arithmetic(bits, shifts)
