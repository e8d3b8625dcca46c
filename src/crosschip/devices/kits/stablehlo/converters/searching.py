"""Searches: extremes, the largest elements, non-zero and unique elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import converts
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, SearchSorted, TopK, Unique


def index_of(find: Callable[..., Value]) -> Callable[[Graph, ArgMax | ArgMin], Value]:
    """Return a converter to a JAX function that returns the index of the first extreme."""

    def convert(g: Graph, op: ArgMax | ArgMin) -> Value:
        data = g[op.input]
        size = data.shape[op.axis]
        flipped = jnp.flip(data, op.axis) if op.select_last else data
        position = find(flipped, op.axis, keepdims=op.keepdim)
        return size - 1 - position if op.select_last else position

    return convert


converts(ArgMax)(index_of(jnp.argmax))
converts(ArgMin)(index_of(jnp.argmin))


@converts(TopK)
def top_k(g: Graph, op: TopK) -> Sequence[Value]:
    data, axis = g[op.input], op.axis
    flipped = jnp.flip(data, axis) if op.largest else data
    order = jnp.argsort(flipped, axis, stable=True)
    if op.largest:
        order = data.shape[axis] - 1 - jnp.flip(order, axis)
    indices = jnp.take(order, jnp.arange(op.k), axis, mode="clip") if data.size else order
    if not data.size or not op.k:
        shape = list(data.shape)
        shape[axis] = op.k
        return [jnp.zeros(shape, data.dtype), jnp.zeros(shape, jnp.int64)]
    return [jnp.take_along_axis(data, indices, axis), indices]


@converts(NonZero, narrow=True)
def non_zero(g: Graph, op: NonZero) -> Value:
    is_non_zero = g[op.input] != 0
    g.fill(jnp.count_nonzero(is_non_zero))
    if not is_non_zero.ndim:
        return jnp.zeros((0, 1), jnp.int64)
    return jnp.stack(jnp.nonzero(is_non_zero, size=is_non_zero.size, fill_value=0))


@converts(Unique, narrow=True)
def unique(g: Graph, op: Unique) -> Sequence[Value]:
    data, axis = g[op.input], op.axis
    entries = data.reshape(-1, 1) if axis is None else jnp.moveaxis(data, axis, 0)
    count = entries.shape[0]
    keys = entries.reshape(count, math.prod(entries.shape[1:]))
    order = _ascending(keys)
    differs = (keys[order][1:] != keys[order][:-1]).any(1)
    begins = jnp.concatenate([jnp.ones(min(count, 1), bool), differs])
    indices = jnp.full(count, count).at[jnp.cumsum(begins) - 1].min(order)
    numbers = jnp.cumsum(begins) - 1
    inverse = jnp.zeros(count, order.dtype).at[order].set(numbers)
    g.fill(begins.sum())
    if not op.sorted:
        appearance = jnp.argsort(indices)
        indices = indices[appearance]
        inverse = jnp.argsort(appearance)[inverse]
    counts = jnp.zeros(count, jnp.int64).at[inverse].add(1)
    values = jnp.take(data.reshape(-1) if axis is None else data, indices, axis or 0, mode="clip")
    return [values, indices, inverse, counts]


def _ascending(keys: Value) -> Value:
    """Return the stable lexicographic order of the rows of a matrix."""

    def sort(step: Any, order: Value) -> Value:
        column = lax.dynamic_index_in_dim(keys, keys.shape[1] - 1 - step, 1, keepdims=False)
        return order[jnp.argsort(column[order], stable=True)]

    return lax.fori_loop(0, keys.shape[1], sort, jnp.arange(keys.shape[0]))


@converts(SearchSorted)
def search_sorted(g: Graph, op: SearchSorted) -> Value:
    sequence, values = g[op.sorted_sequence], g[op.values]
    search = partial(jnp.searchsorted, side="right" if op.right else "left")
    if sequence.ndim == 1:
        return search(sequence, values)
    return jnp.vectorize(search, signature="(n),(m)->(m)")(sequence, values)
