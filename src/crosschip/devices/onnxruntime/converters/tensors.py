"""Operators that move elements about: layout, joining, picking, filling, element types."""

from __future__ import annotations

from crosschip.devices.limits import along_nothing, backward_start
from crosschip.devices.onnxruntime.converters.table import MOVABLE, converts, needs_rank, rank_of
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.hal import Refusal
from crosschip.ops.standard import conversion, creation, indexing, joining, layout, slicing


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


@converts(indexing.Gather, types=MOVABLE)
def gather(g: Graph, op: indexing.Gather) -> str:
    return g.add("Gather", g[op.input], g[op.indices], axis=op.axis)


@converts(layout.Reshape, types=MOVABLE, computed=["shape"])
def reshape(g: Graph, op: layout.Reshape) -> str:
    known = op.outputs[0].type.static_shape
    if known is None:
        return g.add("Reshape", g[op.input], g.indices(op.operand("shape")))
    return g.add("Reshape", g[op.input], g.int64(known), allowzero=1)


@converts(layout.Transpose, types=MOVABLE)
def transpose(g: Graph, op: layout.Transpose) -> str:
    perm = [axis % len(op.perm) for axis in op.perm]
    return g.add("Transpose", g[op.input], perm=perm or None)


@converts(layout.Squeeze, types=MOVABLE)
def squeeze(g: Graph, op: layout.Squeeze) -> str:
    axes = [g.int64(op.axes)] if op.axes else []
    return g.add("Squeeze", g[op.input], *axes)


@converts(layout.Unsqueeze, types=MOVABLE)
def unsqueeze(g: Graph, op: layout.Unsqueeze) -> str:
    return g.add("Unsqueeze", g[op.input], g.int64(op.axes))


def _rank(op: layout.Flatten) -> Refusal | None:
    return needs_rank("input", op.input)


@converts(layout.Flatten, types=MOVABLE, limit=_rank)
def flatten(g: Graph, op: layout.Flatten) -> str:
    known = [size if isinstance(size, int) else -1 for size in op.outputs[0].type.shape or ()]
    if known.count(-1) < 2 and 0 not in known:
        return g.add("Reshape", g[op.input], g.int64(known))
    rank = max(1, rank_of(op.input))
    start, end = op.start_axis % rank, op.end_axis % rank + 1
    before, between, after = (
        g.add("Shape", g[op.input], start=first, end=last)
        for first, last in ((0, start), (start, end), (end, rank))
    )
    merged = g.add("ReduceProd", between, g.int64([0]))
    shape = g.add("Concat", before, merged, after, axis=0)
    return g.add("Reshape", g[op.input], shape, allowzero=1)


@converts(layout.Expand, types=MOVABLE, computed=["shape"])
def expand(g: Graph, op: layout.Expand) -> str:
    # The absolute value turns -1, which keeps a size, into 1, which ONNX has for that.
    return g.add("Expand", g[op.input], g.add("Abs", g.indices(op.operand("shape"))))


@converts(creation.ShapeOf, types=MOVABLE)
def shape_of(g: Graph, op: creation.ShapeOf) -> str:
    return g.cast(g.add("Shape", g[op.input]), op.dtype.dtype)


@converts(slicing.Slice, types=MOVABLE, computed=["starts", "ends"], limit=backward_start)
def slice_(g: Graph, op: slicing.Slice) -> str:
    if along_nothing(op.operand("starts")):
        return g[op.input]
    starts, ends, axes, steps = (
        g.indices(op.operand(slot)) for slot in ("starts", "ends", "axes", "steps")
    )
    return g.add("Slice", g[op.input], starts, ends, axes, steps)
