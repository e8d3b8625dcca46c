"""Operators that change a shape or the order of axes, but not elements."""

from __future__ import annotations

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import converts, shape_of
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.ops.definition.kinds import Layout
from crosschip.ops.standard import layout, rearranging


@converts(layout.Reshape, layout.Squeeze, layout.Unsqueeze, layout.Flatten, computed=["shape"])
def reshape(g: Graph, op: Layout) -> Value:
    return g.reshape(g[op.input], shape_of(op))


@converts(layout.Transpose)
def transpose(g: Graph, op: layout.Transpose) -> Value:
    value = g[op.input]
    return g.transpose(value, [axis % value.rank for axis in op.perm])


@converts(layout.Expand, computed=["shape"])
def expand(g: Graph, op: layout.Expand) -> Value:
    return g.broadcast(g[op.input], shape_of(op))


@converts(rearranging.Tile)
def tile(g: Graph, op: rearranging.Tile) -> Value:
    value = g.with_rank(g[op.input], len(shape_of(op)))
    sizes = zip(shape_of(op), value.shape, strict=True)
    return g.tile(value, [size // own for size, own in sizes])
