"""Elementwise functions of one operand."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import converts, same
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import unary

_FUNCTIONS: dict[type[Operator], Callable[..., Value]] = {
    unary.Abs: jnp.abs,
    unary.Neg: jnp.negative,
    unary.Sign: jnp.sign,
    unary.Square: jnp.square,
    unary.Sqrt: jnp.sqrt,
    unary.Rsqrt: lambda x: 1 / jnp.sqrt(x),
    unary.Reciprocal: lambda x: 1 / x,
    unary.Exp: jnp.exp,
    unary.Log: jnp.log,
    unary.Erf: lax.erf,
    unary.Floor: jnp.floor,
    unary.Ceil: jnp.ceil,
    unary.Round: jnp.round,
    unary.Sin: jnp.sin,
    unary.Cos: jnp.cos,
    unary.Tan: jnp.tan,
    unary.Asin: jnp.arcsin,
    unary.Acos: jnp.arccos,
    unary.Atan: jnp.arctan,
    unary.Sinh: jnp.sinh,
    unary.Cosh: jnp.cosh,
    unary.Asinh: jnp.arcsinh,
    unary.Acosh: jnp.arccosh,
    unary.Atanh: jnp.arctanh,
    unary.IsNaN: jnp.isnan,
}

for _operator, _function in _FUNCTIONS.items():
    converts(_operator, pointwise=True)(same(_function))


@converts(unary.IsInf, pointwise=True)
def is_inf(g: Graph, op: unary.IsInf) -> Value:
    x = g[op.input]
    negative = jnp.isneginf(x) & op.detect_negative
    return negative | (jnp.isposinf(x) & op.detect_positive)
