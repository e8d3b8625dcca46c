"""Arithmetic on two or more tensors, and clipping."""

from __future__ import annotations

from functools import reduce

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import bounded, converts, decomposed, same
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard import arithmetic

converts(arithmetic.Add, pointwise=True)(same(jnp.add))
converts(arithmetic.Sub, pointwise=True)(same(jnp.subtract))
converts(arithmetic.Mul, pointwise=True)(same(jnp.multiply))
converts(arithmetic.Max, pointwise=True)(same(jnp.maximum))
converts(arithmetic.Min, pointwise=True)(same(jnp.minimum))
converts(arithmetic.BiasAdd, arithmetic.Scale)(decomposed)


@converts(arithmetic.Div, pointwise=True)
def div(g: Graph, op: arithmetic.Div) -> Value:
    a, b = g[op.input0], g[op.input1]
    return _divide_integers(a, b) if _is_integer(a) else jnp.divide(a, b)


@converts(arithmetic.FloorDiv, pointwise=True)
def floor_div(g: Graph, op: arithmetic.FloorDiv) -> Value:
    a, b = g[op.input0], g[op.input1]
    if not _is_integer(a):
        return jnp.floor(jnp.divide(a, b))
    quotient = _divide_integers(a, b)
    inexact = (b != 0) & (quotient * b != a)
    return quotient - (inexact & ((a < 0) != (b < 0)))


@converts(arithmetic.Mod, pointwise=True)
def mod(g: Graph, op: arithmetic.Mod) -> Value:
    a, b = jnp.broadcast_arrays(g[op.input0], g[op.input1])
    if _is_integer(a):
        divisor = jnp.where(_traps(a, b), jnp.ones_like(b), b)
        remainder = lax.rem(a, divisor)
    else:
        remainder = lax.rem(a, b)
    if op.fmod:
        return remainder
    return jnp.where((remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder)


@converts(arithmetic.Pow, pointwise=True)
def pow_(g: Graph, op: arithmetic.Pow) -> Value:
    base, exponent = jnp.broadcast_arrays(g[op.input0], g[op.input1])
    if not _is_integer(base):
        return lax.pow(base, exponent)
    power = _integer_power(base, jnp.maximum(exponent, 0))
    odd = exponent % 2 != 0
    inverse = jnp.where(jnp.abs(base) == 1, jnp.where(odd, base, jnp.ones_like(base)), 0)
    return jnp.where(exponent < 0, inverse, power)


def _integer_power(base: Value, exponent: Value) -> Value:
    """Return the power of integers, which wraps around (quirk `power-of-many-bits`)."""

    def step(_: Value, state: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
        product, square, exponent_left = state
        return (
            jnp.where(exponent_left % 2 == 1, product * square, product),
            square * square,
            exponent_left // 2,
        )

    bits = jnp.iinfo(exponent.dtype).bits
    product, _, _ = lax.fori_loop(0, bits, step, (jnp.ones_like(base), base, exponent))
    return product


@converts(arithmetic.SquaredDifference, pointwise=True)
def squared_difference(g: Graph, op: arithmetic.SquaredDifference) -> Value:
    return jnp.square(jnp.subtract(g[op.input0], g[op.input1]))


@converts(arithmetic.Sum, pointwise=True)
def sum_(g: Graph, op: arithmetic.Sum) -> Value:
    return reduce(jnp.add, [g[term] for term in op.terms])


@converts(arithmetic.Clip, pointwise=True)
def clip(g: Graph, op: arithmetic.Clip) -> Value:
    return bounded(g[op.input], op.min, op.max)


def _is_integer(value: Value) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.integer))


def _divide_integers(a: Value, b: Value) -> Value:
    """Divide integers towards zero; by 0 is 0, and the least integer by -1 is itself."""
    a, b = jnp.broadcast_arrays(a, b)
    quotient = lax.div(a, jnp.where(_traps(a, b), jnp.ones_like(b), b))
    return jnp.where(b == 0, jnp.zeros_like(a), quotient)


def _traps(a: Value, b: Value) -> Value:
    """Return where an integer division traps: by 0, or of the least integer by -1."""
    if jnp.issubdtype(a.dtype, jnp.unsignedinteger):
        return b == 0
    return (b == 0) | ((b == -1) & (a == jnp.iinfo(a.dtype).min))
