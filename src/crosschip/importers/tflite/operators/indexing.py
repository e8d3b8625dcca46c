"""Elements at indices."""

from __future__ import annotations

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import GatherOptions, OneHotOptions
from crosschip.importers.facts import rank_of, shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, Operand
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, OneHot
from crosschip.ops.standard.indexing import (
    Gather,
    GatherND,
    Scatter,
    ScatterND,
    SparseToDense,
)
from crosschip.ops.standard.layout import Expand, Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.slicing import Slice

_SEGMENTS = {
    "UNSORTED_SEGMENT_MAX": (Scatter.MAX, "lowest"),
    "UNSORTED_SEGMENT_MIN": (Scatter.MIN, "highest"),
    "UNSORTED_SEGMENT_PROD": (Scatter.MUL, 1),
    "UNSORTED_SEGMENT_SUM": (Scatter.ADD, 0),
}


@imports("GATHER")
def gather(node: Node) -> Operand:
    """Import entries of an axis; the first `batch_dims` axes of both tensors run together."""
    options = node.options(GatherOptions)
    input, indices = node[0], node[1]
    rank, index_rank = rank_of(input), rank_of(indices)
    axis = normalize_axis(options.axis, rank)
    batch = options.batch_dims
    batch = batch + index_rank if batch < 0 else batch
    if not batch:
        return node.add(Gather, input, indices, axis=axis)
    between = list(range(batch, axis))
    rest = list(range(axis + 1, rank))
    moved = node.transpose(input, (*range(batch), axis, *between, *rest))
    last = node.add(Unsqueeze, indices, axes=(index_rank,))
    gathered = node.add(GatherND, moved, last, batch_dims=batch)
    positions = range(batch, index_rank)
    first = [index_rank + number for number in range(len(between))]
    final = [index_rank + len(between) + number for number in range(len(rest))]
    order = (*range(batch), *first, *positions, *final)
    return gathered if list(order) == sorted(order) else node.add(Transpose, gathered, order)


@imports("GATHER_ND")
def gather_nd(node: Node) -> Operand:
    return node.add(GatherND, node[0], node[1])


@imports("SCATTER_ND")
def scatter_nd(node: Node) -> Operand:
    """Import zeros to which updates are added."""
    updates = node[1]
    is_boolean = updates.type.element_type is ElementType.BOOL
    if is_boolean:
        updates = node.add(Cast, updates, ElementType.INT32)
    zeros = node.add(Fill, node[2], np.zeros((), updates.type.element_type.dtype))
    sums = node.add(ScatterND, zeros, node[0], updates, reduction=Scatter.ADD)
    return node.add(Cast, sums, ElementType.BOOL) if is_boolean else sums


@imports("SPARSE_TO_DENSE")
def sparse_to_dense(node: Node) -> Operand:
    """Import values at indices; those of a scalar or list are of one axis."""
    indices, values = node[0], node[2]
    if rank_of(indices) < 2:
        indices = node.add(Reshape, indices, (-1, 1))
    if rank_of(values) == 0:
        count = shape_of(indices)[0]
        if not isinstance(count, int):
            values = node.add(Reshape, values, (1,))
        else:
            values = node.add(Expand, values, (count,))
    return node.add(SparseToDense, indices, values, node[1], node.optional(3))


@imports("ONE_HOT")
def one_hot(node: Node) -> Operand:
    depth = int(node.value(1, "the depth").item())
    axis = node.options(OneHotOptions).axis
    return node.add(OneHot, node[0], depth, node[2], node[3], axis=axis)


@imports(*_SEGMENTS)
def unsorted_segment(node: Node) -> Operand:
    """Import reductions of the entries with the same number; negative ones are left out."""
    reduction, initial = _SEGMENTS[node.type]
    dtype = node[0].type.element_type.dtype
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    value = {"lowest": limits.min, "highest": limits.max}.get(str(initial), initial)
    count = int(node.value(2, "the number of segments").item())
    ids_rank = rank_of(node[1])
    tail = shape_of(node[0])[ids_rank:]
    # One more segment takes the entries that are left out.
    start = node.add(Fill, (count + 1, *tail), np.array(value, dtype))

    ids = node[1]
    zero = node.constant(np.zeros((), ids.type.element_type.dtype))
    beyond = node.constant(np.array(count, ids.type.element_type.dtype))
    ids = node.add(Where, node.add(Less, ids, zero), beyond, ids)
    positions = node.add(Unsqueeze, ids, axes=(ids_rank,))
    combined = node.add(ScatterND, start, positions, node[0], reduction=reduction)
    return node.add(Slice, combined, axes=(0,), starts=(0,), ends=(count,))


@imports("SEGMENT_SUM")
def segment_sum(node: Node) -> Operand:
    """Import sums of the entries with the same number; the numbers are constant and sorted."""
    numbers = node.value(1, "the list of segments").ravel()
    count = int(numbers.max(initial=-1)) + 1
    dtype = node[0].type.element_type.dtype
    zeros = node.add(Fill, (count, *shape_of(node[0])[1:]), np.zeros((), dtype))
    positions = node.constant(numbers[:, None].astype(np.int32))
    return node.add(ScatterND, zeros, positions, node[0], reduction=Scatter.ADD)
