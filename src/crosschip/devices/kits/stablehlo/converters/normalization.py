"""Normalization by given or computed statistics."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ir import Operand
from crosschip.ops.standard import normalization

converts(normalization.LpNormalization, normalization.LRN)(decomposed)


@converts(normalization.BatchNormalization)
def batch_normalization(g: Graph, op: normalization.BatchNormalization) -> Value:
    x = g[op.input]
    factor = g[op.scale] / jnp.sqrt(g[op.variance] + op.epsilon)
    shift = g[op.bias] - g[op.mean] * factor
    return x * _per_channel(factor, x) + _per_channel(shift, x)


@converts(normalization.LayerNormalization)
def layer_normalization(g: Graph, op: normalization.LayerNormalization) -> Value:
    x = g[op.input]
    normalized = _normalize(x, range(op.begin_norm_axis % x.ndim, x.ndim), op.epsilon)
    return _affine(g, normalized, op.scale, op.bias, along=False)


@converts(normalization.GroupNormalization)
def group_normalization(g: Graph, op: normalization.GroupNormalization) -> Value:
    x = g[op.input]
    batch, channels, *image = x.shape
    grouped = x.reshape(batch, op.groups, channels // op.groups, *image)
    normalized = _normalize(grouped, range(2, grouped.ndim), op.epsilon).reshape(x.shape)
    return _affine(g, normalized, op.scale, op.bias, along=True)


@converts(normalization.InstanceNormalization)
def instance_normalization(g: Graph, op: normalization.InstanceNormalization) -> Value:
    x = g[op.input]
    normalized = _normalize(x, range(2, x.ndim), op.epsilon)
    return _affine(g, normalized, op.scale, op.bias, along=True)


@converts(normalization.RMSNormalization)
def rms_normalization(g: Graph, op: normalization.RMSNormalization) -> Value:
    x = g[op.input]
    axes = tuple(range(op.begin_norm_axis % x.ndim, x.ndim))
    squares = jnp.mean(x * x, axes, keepdims=True)
    return _affine(g, x / jnp.sqrt(squares + op.epsilon), op.scale, None, along=False)


def _normalize(x: Value, axes: Sequence[int], epsilon: float) -> Value:
    over = tuple(axes)
    centred = x - jnp.mean(x, over, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred * centred, over, keepdims=True) + epsilon)


def _affine(
    g: Graph, x: Value, scale: Operand | None, bias: Operand | None, *, along: bool
) -> Value:
    """Multiply by scale and add bias, each broadcast along the channels or the trailing axes."""
    if scale is not None:
        factor = g[scale].astype(x.dtype)
        x = x * (_per_channel(factor, x) if along else factor)
    if bias is not None:
        shift = g[bias].astype(x.dtype)
        x = x + (_per_channel(shift, x) if along else shift)
    return x


def _per_channel(numbers: Value, x: Value) -> Value:
    """Reshape one number per channel to broadcast with an image."""
    return numbers.reshape((-1,) + (1,) * (x.ndim - 2)).astype(x.dtype)
