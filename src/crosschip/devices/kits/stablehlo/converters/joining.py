"""Concatenation and splitting."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from crosschip.devices.kits.stablehlo.converters.table import converts
from crosschip.devices.kits.stablehlo.graph import ChannelsLast, Graph, Value, last_axes
from crosschip.ops.standard import joining


@converts(joining.Concat)
def concat(g: Graph, op: joining.Concat) -> Value | ChannelsLast:
    if all(map(g.is_last, op.parts)):
        parts = [g.last(part) for part in op.parts]
        return ChannelsLast(jnp.concatenate(parts, last_axes(parts[0].ndim)[op.axis]))
    return jnp.concatenate([g[part] for part in op.parts], op.axis)


@converts(joining.Stack)
def stack(g: Graph, op: joining.Stack) -> Value:
    return jnp.stack([g[part] for part in op.parts], op.axis)


@converts(joining.Split)
def split(g: Graph, op: joining.Split) -> Value:
    return jnp.split(g[op.input], np.cumsum(op.split)[:-1], op.axis)


@converts(joining.Unstack)
def unstack(g: Graph, op: joining.Unstack) -> Sequence[Value]:
    return list(jnp.moveaxis(g[op.input], op.axis, 0))


@converts(joining.Meshgrid)
def meshgrid(g: Graph, op: joining.Meshgrid) -> Value:
    return jnp.meshgrid(*(g[part] for part in op.parts), indexing="ij")
