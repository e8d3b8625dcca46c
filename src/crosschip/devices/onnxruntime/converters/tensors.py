"""Operators that move elements about: layout, joining, picking, filling, element types."""

from __future__ import annotations

from crosschip.devices.limits import backward_start
from crosschip.devices.onnxruntime.converters.table import MOVABLE, converts, needs_rank, rank_of
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.ops import conversion, creation, joining, layout


@converts(conversion.Cast, types=MOVABLE)
def cast(g: Graph, op: conversion.Cast) -> str:
    return g.cast(g[op.input], op.dtype.dtype)


@converts(creation.Fill, types=MOVABLE, computed=["shape"])
def fill(g: Graph, op: creation.Fill) -> str:
    value = g.add("Reshape", g[op.value], g.int64([]))
    return g.add("Expand", value, g.indices(op.operand("shape")))


@converts(joining.Concat, types=MOVABLE)
def concat(g: Graph, op: joining.Concat) -> str:
    return g.add("Concat", *(g[part] for part in op.parts), axis=op.axis)


@converts(joining.Split, types=MOVABLE, computed=["split"])
def split(g: Graph, op: joining.Split) -> list[str]:
    sizes = g.indices(op.operand("split"))
    return g.add_all("Split", len(op.outputs), g[op.input], sizes, axis=op.axis)


@converts(joining.Gather, types=MOVABLE)
def gather(g: Graph, op: joining.Gather) -> str:
    return g.add("Gather", g[op.input], g[op.indices], axis=op.axis)


@converts(layout.Reshape, types=MOVABLE, computed=["shape"])
def reshape(g: Graph, op: layout.Reshape) -> str:
    return g.add("Reshape", g[op.input], g.indices(op.operand("shape")))


@converts(layout.Transpose, types=MOVABLE)
def transpose(g: Graph, op: layout.Transpose) -> str:
    rank = len(op.perm)
    return g.add("Transpose", g[op.input], perm=[axis % rank for axis in op.perm])


@converts(layout.Squeeze, types=MOVABLE)
def squeeze(g: Graph, op: layout.Squeeze) -> str:
    axes = [g.int64(op.axes)] if op.axes else []
    return g.add("Squeeze", g[op.input], *axes)


@converts(layout.Unsqueeze, types=MOVABLE)
def unsqueeze(g: Graph, op: layout.Unsqueeze) -> str:
    return g.add("Unsqueeze", g[op.input], g.int64(op.axes))


def _rank(op: layout.Flatten) -> str | None:
    return needs_rank("input", op.input)


@converts(layout.Flatten, types=MOVABLE, limit=_rank)
def flatten(g: Graph, op: layout.Flatten) -> str:
    rank = max(1, rank_of(op.input))
    before = g.int64([0] * (op.start_axis % rank) + [-1])
    after = g.add("Shape", g[op.input], start=op.end_axis % rank + 1)
    return g.add("Reshape", g[op.input], g.add("Concat", before, after, axis=0))


@converts(layout.Expand, types=MOVABLE, computed=["shape"])
def expand(g: Graph, op: layout.Expand) -> str:
    # The absolute value turns -1, which keeps a size, into 1, which ONNX has for that.
    return g.add("Expand", g[op.input], g.add("Abs", g.indices(op.operand("shape"))))


@converts(layout.ShapeOf, types=MOVABLE)
def shape_of(g: Graph, op: layout.ShapeOf) -> str:
    return g.cast(g.add("Shape", g[op.input]), op.dtype.dtype)


@converts(layout.Slice, types=MOVABLE, computed=["starts", "ends"], limit=backward_start)
def slice_(g: Graph, op: layout.Slice) -> str:
    starts, ends, axes, steps = (
        g.indices(op.operand(slot)) for slot in ("starts", "ends", "axes", "steps")
    )
    return g.add("Slice", g[op.input], starts, ends, axes, steps)
