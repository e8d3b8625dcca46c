"""Reductions, cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed
from crosschip.devices.kits.stablehlo.graph import ChannelsLast, Graph, Value
from crosschip.ops.standard import reduction
from crosschip.ops.standard.reduction import CumProd, CumSum, Reduction

converts(reduction.ReduceLogSumExp)(decomposed)


def reduced(
    function: Callable[..., Value],
    before: Callable[[Value], Value] | None = None,
    after: Callable[[Value], Value] | None = None,
) -> Callable[[Graph, Reduction], Value | ChannelsLast]:
    """Return a converter to a JAX reduction, with functions applied before and after it."""

    def convert(g: Graph, op: Reduction) -> Value | ChannelsLast:
        # A reduction of exactly the spatial axes can read the channels last.
        rank = len(op.input.type.shape or ())
        of_image = set(range(2, rank)) == {axis % rank for axis in op.axes} if rank else False
        last = of_image and g.is_last(op.input)
        data, axes = g[op.input] if not last else g.last(op.input), op.axes or None
        if last:
            axes = tuple(range(1, rank - 1))
        value = function(before(data) if before else data, axes, keepdims=op.keepdim)
        value = after(value) if after else value
        return ChannelsLast(value) if last and op.keepdim else value

    return convert


def _sum(data: Value, axes: Any, *, keepdims: bool) -> Value:
    return jnp.sum(data, axes, dtype=data.dtype, keepdims=keepdims)


def _prod(data: Value, axes: Any, *, keepdims: bool) -> Value:
    return jnp.prod(data, axes, dtype=data.dtype, keepdims=keepdims)


def _max(data: Value, axes: Any, *, keepdims: bool) -> Value:
    return jnp.max(data, axes, keepdims=keepdims, initial=_limits(data)[0])


def _min(data: Value, axes: Any, *, keepdims: bool) -> Value:
    return jnp.min(data, axes, keepdims=keepdims, initial=_limits(data)[1])


def _limits(data: Value) -> tuple[Any, Any]:
    low, high = reduction.limits(np.dtype(data.dtype))
    return np.array(low, data.dtype), np.array(high, data.dtype)


converts(reduction.ReduceSum)(reduced(_sum))
converts(reduction.ReduceProd)(reduced(_prod))
converts(reduction.ReduceMax)(reduced(_max))
converts(reduction.ReduceMin)(reduced(_min))
converts(reduction.ReduceMean)(reduced(jnp.mean))
converts(reduction.ReduceAll)(reduced(jnp.all))
converts(reduction.ReduceAny)(reduced(jnp.any))
converts(reduction.ReduceL1)(reduced(_sum, before=jnp.abs))
converts(reduction.ReduceSumSquare)(reduced(_sum, before=jnp.square))
converts(reduction.ReduceL2)(reduced(_sum, before=jnp.square, after=jnp.sqrt))
converts(reduction.ReduceLogSum)(reduced(_sum, after=jnp.log))


@converts(CumSum)
def cum_sum(g: Graph, op: CumSum) -> Value:
    return _accumulate(lax.cumsum, 0, g[op.input], op)


@converts(CumProd)
def cum_prod(g: Graph, op: CumProd) -> Value:
    return _accumulate(lax.cumprod, 1, g[op.input], op)


def _accumulate(
    function: Callable[..., Value], neutral: int, data: Value, op: CumSum | CumProd
) -> Value:
    axis = op.axis % data.ndim
    size = data.shape[axis]
    if op.exclusive and size:
        shifted = lax.slice_in_dim(data, 1, size, axis=axis)
        if not op.reverse:
            shifted = lax.slice_in_dim(data, 0, size - 1, axis=axis)
        edge = jnp.full_like(lax.slice_in_dim(data, 0, 1, axis=axis), neutral)
        data = jnp.concatenate([shifted, edge] if op.reverse else [edge, shifted], axis)
    return function(data, axis, reverse=op.reverse) if data.size else data
