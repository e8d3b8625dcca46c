"""Tensors computed from a shape, a range or indices; shapes and ranks."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from crosschip.devices.kits.stablehlo.converters.table import converts, shape_of
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard import creation


@converts(creation.ShapeOf)
def shape(g: Graph, op: creation.ShapeOf) -> Value:
    return np.array(op.input.type.static_shape, op.dtype.dtype)


@converts(creation.Rank)
def rank(g: Graph, op: creation.Rank) -> Value:
    return np.array(len(op.input.type.static_shape or ()), np.int32)


@converts(creation.Fill, creation.FillLike, narrow=True)
def fill(g: Graph, op: creation.Fill | creation.FillLike) -> Value:
    return jnp.full(shape_of(op), g[op.value].reshape(()))


@converts(creation.Range, sizing=("start", "end", "step"), narrow=True)
def range_(g: Graph, op: creation.Range) -> Value:
    bounds = [operand.value for operand in (op.start, op.end, op.step)]
    first, _, step = (bound.item() for bound in bounds if bound is not None)
    steps = jnp.arange(*shape_of(op))
    dtype = op.start.type.element_type.dtype
    if dtype.kind in "iu":
        return (first + steps * step).astype(dtype)
    return (np.float64(first) + steps * np.float64(step)).astype(dtype)


@converts(creation.OneHot, narrow=True)
def one_hot(g: Graph, op: creation.OneHot) -> Value:
    indices = g[op.indices]
    integers = indices.astype(jnp.int64)
    if jnp.issubdtype(indices.dtype, jnp.floating):
        reals = jnp.where(jnp.isnan(indices), op.depth, indices.astype(jnp.float64))
        integers = jnp.trunc(reals).astype(jnp.int64)
    positions = jnp.where(integers < 0, integers + op.depth, integers)
    hot = jnp.moveaxis(positions[..., None] == jnp.arange(op.depth), -1, op.axis)
    on, off = (g[value].reshape(()) for value in (op.on_value, op.off_value))
    return jnp.where(hot, on, off)
