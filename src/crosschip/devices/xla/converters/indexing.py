"""Reading and writing elements at places that other tensors give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp

from crosschip.devices.xla.converters.table import converts, decomposed, shape_of
from crosschip.devices.xla.graph import Graph, Value
from crosschip.ir import Operand, Operation
from crosschip.ops.standard import indexing
from crosschip.ops.standard.indexing import Scatter

_TRUSTED = "promise_in_bounds"
"""Places are checked, and the run is refused if one is out of bounds."""

converts(indexing.SparseToDense)(decomposed)


@converts(indexing.Gather)
def gather(g: Graph, op: indexing.Gather) -> Value:
    data = g[op.input]
    axis = op.axis % data.ndim
    places = g.within(op, g[op.indices], data.shape[axis])
    if not data.size:
        return jnp.zeros(shape_of(op), data.dtype)
    return data.at[(slice(None),) * axis + (places,)].get(mode=_TRUSTED)


@converts(indexing.GatherElements)
def gather_elements(g: Graph, op: indexing.GatherElements) -> Value:
    data = g[op.input]
    axis = op.axis % data.ndim
    places = g.within(op, g[op.indices], data.shape[axis])
    if not data.size:
        return jnp.zeros(shape_of(op), data.dtype)
    return data.at[_around(places, axis)].get(mode=_TRUSTED)


@converts(indexing.GatherND)
def gather_nd(g: Graph, op: indexing.GatherND) -> Value:
    data, batch = g[op.input], op.batch_dims
    indices = g[op.indices]
    parts = _parts(g, op, op.indices, data.shape[batch:])
    if not data.size or not math.prod(shape_of(op)):
        return jnp.zeros(shape_of(op), data.dtype)
    more = indices.ndim - 1 - batch
    own = [
        jnp.arange(size).reshape((-1,) + (1,) * (batch - 1 - axis + more))
        for axis, size in enumerate(data.shape[:batch])
    ]
    if not own and not parts:
        return jnp.broadcast_to(data, shape_of(op))
    gathered = data.at[(*own, *parts)].get(mode=_TRUSTED)
    return jnp.broadcast_to(gathered, shape_of(op)) if gathered.shape != shape_of(op) else gathered


@converts(indexing.ScatterND)
def scatter_nd(g: Graph, op: indexing.ScatterND) -> Value:
    data, updates = g[op.input], g[op.updates]
    parts = _parts(g, op, op.indices, data.shape)
    if not parts:  # each update is of the whole tensor
        updates = updates.reshape(math.prod(g[op.indices].shape[:-1]), *data.shape)
        first = jnp.zeros(updates.shape[:1], jnp.int64)
        return _written(data[None], (first,), updates, op.reduction)[0]
    return _written(data, tuple(parts), updates, op.reduction)


@converts(indexing.ScatterElements)
def scatter_elements(g: Graph, op: indexing.ScatterElements) -> Value:
    data = g[op.input]
    axis = op.axis % data.ndim
    places = g.within(op, g[op.indices], data.shape[axis])
    return _written(data, _around(places, axis), g[op.updates], op.reduction)


def _parts(g: Graph, op: Operation, indices: Operand, sizes: Sequence[int]) -> list[Value]:
    """Indices of places, an array for each axis, counted from the front."""
    columns = jnp.moveaxis(g[indices], -1, 0)
    return [g.within(op, columns[place], sizes[place]) for place in range(columns.shape[0])]


def _around(places: Value, axis: int) -> tuple[Value, ...]:
    """Indices of all axes: on one of them as given, on others an element's own."""
    grid: list[Value] = [
        jnp.arange(size).reshape((-1,) + (1,) * (places.ndim - 1 - other))
        for other, size in enumerate(places.shape)
    ]
    grid[axis] = places
    return tuple(grid)


def _written(data: Value, places: tuple[Value, ...], updates: Value, reduction: Scatter) -> Value:
    if not updates.size or not data.size:
        return data
    target = data.at[places]
    write = {
        Scatter.NONE: target.set,
        Scatter.ADD: target.add,
        Scatter.MUL: target.multiply,
        Scatter.MAX: target.max,
        Scatter.MIN: target.min,
    }[reduction]
    return write(updates, mode=_TRUSTED)
