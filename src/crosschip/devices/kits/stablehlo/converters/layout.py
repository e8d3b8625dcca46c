"""Reshapes, transpositions and broadcasts."""

from __future__ import annotations

import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters.table import converts, shape_of
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze


@converts(Flatten, Reshape, Squeeze, Unsqueeze)
def reshape(g: Graph, op: Flatten | Reshape | Squeeze | Unsqueeze) -> Value:
    return jnp.reshape(g[op.input], shape_of(op))


@converts(Transpose)
def transpose(g: Graph, op: Transpose) -> Value:
    return jnp.transpose(g[op.input], op.perm)


@converts(Expand)
def expand(g: Graph, op: Expand) -> Value:
    return jnp.broadcast_to(g[op.input], shape_of(op))
