"""Gather and scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed, shape_of
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ir import Operand, Operation
from crosschip.ops.standard import indexing
from crosschip.ops.standard.indexing import Scatter

_TRUSTED = "promise_in_bounds"
"""Indices are checked: runs with one out of range are refused (quirk `index-out-of-range`)."""

converts(indexing.SparseToDense)(decomposed)


@converts(indexing.Gather)
def gather(g: Graph, op: indexing.Gather) -> Value:
    data = g[op.input]
    axis = op.axis % data.ndim
    indices = g.within(op, g[op.indices], data.shape[axis])
    if not data.size:
        return jnp.zeros(shape_of(op), data.dtype)
    return data.at[(slice(None),) * axis + (indices,)].get(mode=_TRUSTED)


@converts(indexing.GatherElements)
def gather_elements(g: Graph, op: indexing.GatherElements) -> Value:
    data = g[op.input]
    axis = op.axis % data.ndim
    indices = g.within(op, g[op.indices], data.shape[axis])
    if not data.size:
        return jnp.zeros(shape_of(op), data.dtype)
    return data.at[_all_axes(indices, axis)].get(mode=_TRUSTED)


@converts(indexing.GatherND)
def gather_nd(g: Graph, op: indexing.GatherND) -> Value:
    data, batch = g[op.input], op.batch_dims
    indices = g[op.indices]
    parts = _parts(g, op, op.indices, data.shape[batch:])
    if not data.size or not math.prod(shape_of(op)):
        return jnp.zeros(shape_of(op), data.dtype)
    trailing = indices.ndim - 1 - batch
    batch_indices = [
        jnp.arange(size).reshape((-1,) + (1,) * (batch - 1 - axis + trailing))
        for axis, size in enumerate(data.shape[:batch])
    ]
    if not batch_indices and not parts:
        return jnp.broadcast_to(data, shape_of(op))
    gathered = data.at[(*batch_indices, *parts)].get(mode=_TRUSTED)
    return jnp.broadcast_to(gathered, shape_of(op)) if gathered.shape != shape_of(op) else gathered


@converts(indexing.ScatterND)
def scatter_nd(g: Graph, op: indexing.ScatterND) -> Value:
    data, updates = g[op.input], g[op.updates]
    parts = _parts(g, op, op.indices, data.shape)
    if not parts:  # each update is of the whole tensor
        updates = updates.reshape(math.prod(g[op.indices].shape[:-1]), *data.shape)
        first = jnp.zeros(updates.shape[:1], jnp.int64)
        return _scatter(data[None], (first,), updates, op.reduction)[0]
    return _scatter(data, tuple(parts), updates, op.reduction)


@converts(indexing.ScatterElements)
def scatter_elements(g: Graph, op: indexing.ScatterElements) -> Value:
    data = g[op.input]
    axis = op.axis % data.ndim
    indices = g.within(op, g[op.indices], data.shape[axis])
    return _scatter(data, _all_axes(indices, axis), g[op.updates], op.reduction)


def _parts(g: Graph, op: Operation, indices: Operand, sizes: Sequence[int]) -> list[Value]:
    """Return one array of non-negative indices per axis."""
    columns = jnp.moveaxis(g[indices], -1, 0)
    return [g.within(op, columns[column], sizes[column]) for column in range(columns.shape[0])]


def _all_axes(indices: Value, axis: int) -> tuple[Value, ...]:
    """Return indices of all axes: the given ones on one axis, the element's own on the others."""
    grid: list[Value] = [
        jnp.arange(size).reshape((-1,) + (1,) * (indices.ndim - 1 - other))
        for other, size in enumerate(indices.shape)
    ]
    grid[axis] = indices
    return tuple(grid)


def _scatter(data: Value, indices: tuple[Value, ...], updates: Value, reduction: Scatter) -> Value:
    if not updates.size or not data.size:
        return data
    target = data.at[indices]
    write = {
        Scatter.NONE: target.set,
        Scatter.ADD: target.add,
        Scatter.MUL: target.multiply,
        Scatter.MAX: target.max,
        Scatter.MIN: target.min,
    }[reduction]
    return write(updates, mode=_TRUSTED)
