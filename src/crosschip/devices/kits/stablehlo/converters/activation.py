"""Activation functions."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import bounded, converts, decomposed, same
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard import activation

converts(activation.Sigmoid, pointwise=True)(same(lax.logistic))
converts(activation.Tanh, pointwise=True)(same(jnp.tanh))
converts(activation.Relu, pointwise=True)(same(lambda x: jnp.maximum(x, 0)))
converts(activation.Relu6, pointwise=True)(same(lambda x: bounded(x, 0, 6)))
converts(activation.Swish, pointwise=True)(same(lambda x: x * lax.logistic(x)))
converts(activation.Softsign, pointwise=True)(same(lambda x: x / (1 + jnp.abs(x))))
converts(activation.Hardmax, activation.ThresholdedRelu, activation.Shrink)(decomposed)


@converts(activation.LeakyRelu, pointwise=True)
def leaky_relu(g: Graph, op: activation.LeakyRelu) -> Value:
    x = g[op.input]
    return jnp.where(x < 0, op.alpha * x, x)


@converts(activation.PRelu)
def prelu(g: Graph, op: activation.PRelu) -> Value:
    x, slope = g[op.input], g[op.slope]
    after = max(0, x.ndim - 2) if slope.ndim == 1 else 0
    return jnp.where(x < 0, slope.reshape(slope.shape + (1,) * after) * x, x)


@converts(activation.HardSigmoid, pointwise=True)
def hard_sigmoid(g: Graph, op: activation.HardSigmoid) -> Value:
    return bounded(op.alpha * g[op.input] + op.beta, 0, 1)


@converts(activation.HardSwish, pointwise=True)
def hard_swish(g: Graph, op: activation.HardSwish) -> Value:
    x = g[op.input]
    return x * bounded(op.alpha * x + op.beta, 0, 1)


@converts(activation.Gelu, pointwise=True)
def gelu(g: Graph, op: activation.Gelu) -> Value:
    x = g[op.input]
    if op.approximate:
        curve = jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x)))
    else:
        curve = lax.erf(x * math.sqrt(1 / 2))
    return x * 0.5 * (1 + curve)


@converts(activation.Softplus, pointwise=True)
def softplus(g: Graph, op: activation.Softplus) -> Value:
    x = g[op.input]
    scaled = op.beta * x
    curve = jnp.maximum(scaled, 0) + jnp.log1p(jnp.exp(-jnp.abs(scaled)))
    return jnp.where(scaled > op.threshold, x, curve / op.beta)


@converts(activation.Mish, pointwise=True)
def mish(g: Graph, op: activation.Mish) -> Value:
    x = g[op.input]
    return x * jnp.tanh(jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))))


@converts(activation.Elu, pointwise=True)
def elu(g: Graph, op: activation.Elu) -> Value:
    x = g[op.input]
    return jnp.where(x > 0, x, op.alpha * _power_less_1(x))


@converts(activation.Selu, pointwise=True)
def selu(g: Graph, op: activation.Selu) -> Value:
    x = g[op.input]
    return op.gamma * jnp.where(x > 0, x, op.alpha * _power_less_1(x))


@converts(activation.Celu, pointwise=True)
def celu(g: Graph, op: activation.Celu) -> Value:
    x = g[op.input]
    return jnp.where(x > 0, x, op.alpha * jnp.expm1(jnp.minimum(x, 0) / op.alpha))


def _power_less_1(x: Value) -> Value:
    return jnp.expm1(jnp.minimum(x, 0))


@converts(activation.Softmax)
def softmax(g: Graph, op: activation.Softmax) -> Value:
    powers = jnp.exp(_below_greatest(g[op.input], op.axis))
    return powers / jnp.sum(powers, op.axis, keepdims=True)


@converts(activation.LogSoftmax)
def log_softmax(g: Graph, op: activation.LogSoftmax) -> Value:
    below = _below_greatest(g[op.input], op.axis)
    return below - jnp.log(jnp.sum(jnp.exp(below), op.axis, keepdims=True))


def _below_greatest(x: Value, axis: int) -> Value:
    return x - jnp.max(x, axis, keepdims=True, initial=-jnp.inf)
