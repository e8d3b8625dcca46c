"""Changes of shape and axis order."""

from __future__ import annotations

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts, needs_rank, rank_of
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.standard import layout


@converts(layout.Reshape, types=MOVABLE, computed=["shape"])
def reshape(g: Graph, op: layout.Reshape) -> str:
    static_shape = op.outputs[0].type.static_shape
    if static_shape is None:
        shape = g.indices(op.operand("shape"))
        return g.add("Reshape", g[op.input], shape, allowzero=int(op.allow_zero))
    return g.add("Reshape", g[op.input], g.int64(static_shape), allowzero=1)


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


@converts(layout.Flatten, types=MOVABLE, limit=lambda op: needs_rank("input", op.input))
def flatten(g: Graph, op: layout.Flatten) -> str:
    sizes = [size if isinstance(size, int) else -1 for size in op.outputs[0].type.shape or ()]
    if sizes.count(-1) < 2 and 0 not in sizes:
        return g.add("Reshape", g[op.input], g.int64(sizes))
    rank = max(1, rank_of(op.input))
    start, end = op.start_axis % rank, op.end_axis % rank + 1
    before, middle, after = (
        g.add("Shape", g[op.input], start=first, end=last)
        for first, last in ((0, start), (start, end), (end, rank))
    )
    merged = g.add("ReduceProd", middle, g.int64([0]))
    shape = g.add("Concat", before, merged, after, axis=0)
    return g.add("Reshape", g[op.input], shape, allowzero=1)


@converts(layout.Expand, types=MOVABLE, computed=["shape"])
def expand(g: Graph, op: layout.Expand) -> str:
    sizes = g.indices(op.operand("shape"))
    # -1 keeps a size; in ONNX, 1 does.
    keeps = g.add("Equal", sizes, g.int64([-1]))
    return g.add("Expand", g[op.input], g.add("Where", keeps, g.int64([1]), sizes))
