"""Finding elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp

from crosschip.devices.xla.converters.table import converts
from crosschip.devices.xla.graph import Graph, Value
from crosschip.ops.standard.searching import ArgMax, ArgMin, TopK


def placed(find: Callable[..., Value]) -> Callable[[Graph, ArgMax | ArgMin], Value]:
    """The converter to a JAX function that finds the first of the extreme elements."""

    def convert(g: Graph, op: ArgMax | ArgMin) -> Value:
        data = g[op.input]
        size = data.shape[op.axis]
        turned = jnp.flip(data, op.axis) if op.select_last else data
        found = find(turned, op.axis, keepdims=op.keepdim)
        return size - 1 - found if op.select_last else found

    return convert


converts(ArgMax)(placed(jnp.argmax))
converts(ArgMin)(placed(jnp.argmin))


@converts(TopK)
def top_k(g: Graph, op: TopK) -> Sequence[Value]:
    data, axis = g[op.input], op.axis
    turned = jnp.flip(data, axis) if op.largest else data
    order = jnp.argsort(turned, axis, stable=True)
    if op.largest:
        order = data.shape[axis] - 1 - jnp.flip(order, axis)
    places = jnp.take(order, jnp.arange(op.k), axis, mode="clip") if data.size else order
    if not data.size or not op.k:
        shape = list(data.shape)
        shape[axis] = op.k
        return [jnp.zeros(shape, data.dtype), jnp.zeros(shape, jnp.int64)]
    return [jnp.take_along_axis(data, places, axis), places]
