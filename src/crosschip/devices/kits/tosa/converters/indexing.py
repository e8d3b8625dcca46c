"""Operators that read and write elements at indices."""

from __future__ import annotations

from math import prod

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import converts, shape_of
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.hal import Refusal, Rule
from crosschip.ops.standard.indexing import Gather, GatherND, Scatter, ScatterND

_MAX_MASK = 2**24
"""The maximum number of elements of an intermediate tensor of all targets and updates."""


def positive(g: Graph, indices: Value, size: int) -> Value:
    """Return indices of an axis, negative ones counted from its start."""
    if indices.elements is not None:
        elements = indices.elements
        return g.constant(np.where(elements < 0, elements + size, elements), DType.INT32)
    from_end = g.sum(indices, g.number(size, indices))
    return g.select(g.greater(g.number(0, indices), indices), from_end, indices)


@converts(Gather)
def gather(g: Graph, op: Gather) -> Value:
    value = g[op.input]
    axis = op.axis % value.rank
    indices = positive(g, g[op.indices], value.shape[axis])
    if indices.elements is not None:
        return g.gather(value, indices.elements, axis)
    before, after = value.shape[:axis], value.shape[axis + 1 :]
    # The indexed axis goes first, so that the indices are not repeated.
    order = (axis, *range(axis), *range(axis + 1, value.rank))
    moved = g.transpose(value, order)
    rows = g.reshape(moved, (1, value.shape[axis], prod(before) * prod(after)))
    entries = g.gather_rows(rows, g.reshape(indices, (1, prod(indices.shape))))
    rows_of_entries = g.reshape(entries, (prod(indices.shape), prod(before), prod(after)))
    return g.reshape(g.transpose(rows_of_entries, (1, 0, 2)), (*before, *indices.shape, *after))


def _offsets(g: Graph, indices: Value, sizes: tuple[int, ...]) -> Value:
    """Return the offsets of index tuples, which are in the last axis."""
    offset = g.number(0, g.part(indices, indices.rank - 1, 0, 1)) if not sizes else None
    for axis, size in enumerate(sizes):
        index = positive(g, g.part(indices, indices.rank - 1, axis, axis + 1), size)
        index = _require_in_range(g, index, size) if g.checks_indices else index
        step = g.number(prod(sizes[axis + 1 :]), index)
        term = g.product(index, step)
        offset = term if offset is None else g.sum(offset, term)
    assert offset is not None, "there is a first axis"
    return offset


def _require_in_range(g: Graph, index: Value, size: int) -> Value:
    """Return indices as `GATHER` reads them from a list of all, which fails out of range."""
    numbers = _numbers(g, size, (1, size, 1))
    read = g.gather_rows(numbers, g.reshape(index, (1, prod(index.shape))))
    return g.reshape(read, index.shape)


@converts(GatherND)
def gather_nd(g: Graph, op: GatherND) -> Value:
    value, indices = g[op.input], g[op.indices]
    batch, count = op.batch_dims, indices.shape[-1]
    sizes = value.shape[batch : batch + count]
    rows = prod(value.shape[:batch])
    table = g.reshape(value, (rows, prod(sizes), prod(value.shape[batch + count :])))
    offsets = _offsets(g, indices, sizes)
    return g.gather_rows(table, g.reshape(offsets, (rows, prod(offsets.shape) // rows)))


def _few_pairs(op: ScatterND) -> Refusal | None:
    shape, indices = shape_of(op.input), shape_of(op.indices)
    count = indices[-1]
    pairs = prod(shape[:count]) * prod(indices[:-1])
    if op.reduction is not Scatter.NONE:
        pairs *= prod(shape[count:])
    elif op.indices.is_constant:
        return None
    if pairs > _MAX_MASK:
        detail = f"TOSA writes each element once; {pairs} pairs to compare are too many"
        return Refusal("indices", detail, Rule.SHAPE)
    return None


@converts(ScatterND, limit=_few_pairs)
def scatter_nd(g: Graph, op: ScatterND) -> Value:
    value, indices, updates = g[op.input], g[op.indices], g[op.updates]
    count = indices.shape[-1]
    sizes, rest = value.shape[:count], prod(value.shape[count:])
    offsets = _offsets(g, indices, sizes)
    writes = prod(offsets.shape)
    targets = prod(sizes)
    offsets = g.reshape(offsets, (1, writes))
    updates = g.reshape(updates, (1, writes, rest))
    table = g.reshape(value, (1, targets, rest))
    if op.reduction is not Scatter.NONE:
        return _combine(g, op.reduction, table, offsets, updates)
    dtype = value.dtype
    if dtype is DType.BOOL:
        table, updates = g.cast(table, DType.INT8), g.cast(updates, DType.INT8)
    # For each target the last update that writes it, or -1.
    written = g.equal(g.reshape(offsets, (1, writes)), _numbers(g, targets, (targets, 1)))
    orders = g.select(written, _numbers(g, writes, (1, writes)), g.number(-1, offsets))
    last = g.reshape(g.reduce(Op.REDUCE_MAX, orders, [1]), (1, targets))
    chosen = g.gather_rows(updates, g.binary(Op.MAXIMUM, last, g.number(0, last)))
    is_written = g.reshape(g.greater_equal(last, g.number(0, last)), (1, targets, 1))
    return g.cast(g.select(is_written, chosen, table), dtype)


def _numbers(g: Graph, count: int, shape: tuple[int, ...]) -> Value:
    return g.constant(np.arange(count, dtype=np.int32).reshape(shape), DType.INT32)


_REDUCTIONS = {
    Scatter.ADD: (Op.REDUCE_SUM, Op.ADD),
    Scatter.MUL: (Op.REDUCE_PRODUCT, Op.MUL),
    Scatter.MAX: (Op.REDUCE_MAX, Op.MAXIMUM),
    Scatter.MIN: (Op.REDUCE_MIN, Op.MINIMUM),
}


def _combine(g: Graph, reduction: Scatter, table: Value, offsets: Value, updates: Value) -> Value:
    """Combine the updates of each target, [1, targets, rest], with its elements."""
    _, targets, rest = table.shape
    writes = offsets.shape[1]
    reduce, combine = _REDUCTIONS[reduction]
    neutral = g.number(_neutral(reduction, updates.dtype), Value("", updates.dtype, (1, 1, 1)))
    numbers = _numbers(g, targets, (targets, 1, 1))
    written = g.equal(g.reshape(offsets, (1, writes, 1)), numbers)
    parts = g.select(written, g.reshape(updates, (1, writes, rest)), neutral)
    if reduce is Op.REDUCE_PRODUCT:
        combined = g.part(parts, 1, 0, 1)
        for index in range(1, writes):
            combined = g.product(combined, g.part(parts, 1, index, index + 1))
    else:
        combined = g.reduce(reduce, parts, [1])
    return g.binary(combine, table, g.reshape(combined, table.shape))


def _neutral(reduction: Scatter, dtype: DType) -> float:
    if reduction in (Scatter.ADD, Scatter.MUL):
        return int(reduction is Scatter.MUL)
    infinite = np.inf if dtype is DType.FP32 else 2**31 - 1
    least = -np.inf if dtype is DType.FP32 else -(2**31)
    return least if reduction is Scatter.MAX else infinite
