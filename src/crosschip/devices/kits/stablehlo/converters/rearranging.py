"""Tiling, rolling, reversal and triangular parts."""

from __future__ import annotations

import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters.table import converts
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu


@converts(Tile)
def tile(g: Graph, op: Tile) -> Value:
    return jnp.tile(g[op.input], op.repeats)


@converts(Roll)
def roll(g: Graph, op: Roll) -> Value:
    data = g[op.input]
    return data if op.axes == () or not data.size else jnp.roll(data, op.shifts, op.axes)


@converts(ReverseSequence)
def reverse_sequence(g: Graph, op: ReverseSequence) -> Value:
    data, lengths = g[op.input], g[op.lengths]
    axes = op.batch_axis % data.ndim, op.time_axis % data.ndim
    rows = jnp.moveaxis(data, axes, (0, 1))
    steps = rows.shape[1]
    g.require(op, f"lengths: one is not in [0, {steps}]", (lengths >= 0) & (lengths <= steps))
    if not data.size:
        return data
    positions = jnp.arange(steps)
    ends = lengths[:, None]
    source = jnp.clip(jnp.where(positions < ends, ends - 1 - positions, positions), 0, steps - 1)
    reversed_rows = rows[jnp.arange(rows.shape[0])[:, None], source]
    return jnp.moveaxis(reversed_rows, (0, 1), axes)


@converts(Trilu, narrow=True)
def trilu(g: Graph, op: Trilu) -> Value:
    data = g[op.input]
    rows, columns = (jnp.arange(size) for size in data.shape[-2:])
    diagonal = columns - rows[:, None]
    mask = diagonal >= op.k if op.upper else diagonal <= op.k
    return jnp.where(mask, data, jnp.zeros((), data.dtype))
