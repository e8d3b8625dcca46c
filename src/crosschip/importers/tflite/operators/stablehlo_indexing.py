"""StableHLO's gathers and scatters, of windows at positions that are computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.stablehlo_options import (
    StablehloGatherOptions,
    StablehloScatterOptions,
)
from crosschip.importers.facts import rank_of, shape_of, size_of, static_shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.importers.tflite.operators.stablehlo import integers
from crosschip.ir import Array, ElementType, Operand, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ops.standard.arithmetic import Add, Clip, Max, Min, Mul
from crosschip.ops.standard.comparison import GreaterEqual, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather, GatherND, Scatter, ScatterND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.reduction import ReduceAll, ReduceSum
from crosschip.ops.standard.slicing import Slice

_SCATTERS = {
    "STABLEHLO_ADD": Scatter.ADD,
    "STABLEHLO_MAXIMUM": Scatter.MAX,
    "STABLEHLO_MINIMUM": Scatter.MIN,
    "STABLEHLO_MULTIPLY": Scatter.MUL,
}
"""The reductions by the only operator of their region."""

_OF_BOOLEANS = {Scatter.ADD: Scatter.MAX, Scatter.MUL: Scatter.MIN}
"""The reductions of 0 and 1 that are those of booleans."""


@imports("STABLEHLO_GATHER")
def gather(node: Node) -> Operand:
    """Import slices of the operand; their positions are clamped so that they fit.

    The axes with positions become the first axes of the operand, which GATHER_ND indexes.
    """
    options, rank = node.options(StablehloGatherOptions), rank_of(node[0])
    sizes, mapped = integers(options.slice_sizes, rank), integers(options.start_index_map)
    offsets, collapsed = integers(options.offset_dims), integers(options.collapsed_slice_dims)
    rest = [axis for axis in range(rank) if axis not in mapped]
    part = node[0]
    if any(size_of(part, axis) != sizes[axis] for axis in rest):
        ends = tuple(sizes[axis] for axis in rest)
        part = node.add(Slice, part, axes=tuple(rest), starts=(0,) * len(rest), ends=ends)
    part = node.transpose(part, (*mapped, *rest))
    starts = _index_vectors(node, node[1], options.index_vector_dim)
    latest = np.array([size_of(node[0], axis) - sizes[axis] for axis in mapped])
    zero = node.constant(np.zeros((), np.int64))
    starts = node.add(Min, node.add(Max, starts, zero), node.constant(latest.astype(np.int64)))
    grid = _grid([sizes[axis] for axis in mapped])
    batch = rank_of(starts) - 1
    spread = node.add(Unsqueeze, starts, axes=tuple(range(batch, batch + len(mapped))))
    gathered = node.add(GatherND, part, node.add(Add, spread, node.constant(grid)))
    axes = [*mapped, *rest]
    remaining_axes = [batch + axes.index(axis) for axis in range(rank) if axis not in collapsed]
    ones = [batch + axes.index(axis) for axis in collapsed]
    batches = iter(range(batch))
    order = [
        remaining_axes[offsets.index(axis)] if axis in offsets else next(batches)
        for axis in range(batch + len(remaining_axes))
    ]
    moved = node.add(Transpose, gathered, (*order, *ones))
    shape = shape_of(moved)[: len(order)]
    return node.add(Reshape, moved, (*(0 if not isinstance(n, int) else n for n in shape),))


@imports("STABLEHLO_SCATTER")
def scatter(node: Node) -> Operand:
    """Import updates of windows of the operand; elements outside it are left out.

    Elements are numbered in row-major order, and one more takes those that are left out.
    """
    options, shape = node.options(StablehloScatterOptions), static_shape_of(node[0])
    types = node.subgraph.operator_types(options.update_computation_subgraph_index)
    if len(types) > 1 or any(type_ not in _SCATTERS for type_ in types):
        raise UnsupportedError(f"updates by {' and '.join(types)}")
    window_axes = integers(options.update_window_dims)
    inserted = integers(options.inserted_window_dims)
    update_shape, windows = static_shape_of(node[2]), iter(window_axes)
    # For each axis of the operand the axis of the updates; -1 for none.
    axes = [-1 if axis in inserted else next(windows) for axis in range(len(shape))]
    sizes = [1 if axis < 0 else update_shape[axis] for axis in axes]
    starts = _index_vectors(node, node[1], options.index_vector_dim)
    mapped = integers(options.scatter_dims_to_operand_dims)
    numbers = element_numbers(node, _positions(node, starts, mapped, sizes), shape)
    # As the updates, whose order decides which of two for one element is last.
    axes = [*(axis for axis in range(len(update_shape)) if axis not in window_axes), *axes]
    order = [axes.index(axis) for axis in range(len(update_shape))]
    numbers = node.transpose(numbers, (*order, *(n for n, axis in enumerate(axes) if axis < 0)))
    count, kind = math.prod(shape), node[0].type.element_type
    reduction = _SCATTERS[types[0]] if types else Scatter.NONE
    operand, updates = node[0], node[2]
    if kind is ElementType.BOOL:
        reduction = _OF_BOOLEANS.get(reduction, reduction)
        operand, updates = (node.add(Cast, each, ElementType.INT32) for each in (operand, updates))
    flat = node.add(Pad, node.add(Reshape, operand, (count,)), (0, 1))
    flat = node.add(
        ScatterND,
        flat,
        node.add(Reshape, numbers, (-1, 1)),
        node.add(Reshape, updates, (math.prod(update_shape),)),
        reduction=reduction,
    )
    remaining = node.add(Slice, flat, axes=(0,), starts=(0,), ends=(count,))
    return node.add(Cast, node.add(Reshape, remaining, shape), kind)


def element_numbers(node: Node, positions: Operand, shape: Sequence[int]) -> Operand:
    """Return the number of each position in row-major order; outside a shape, one beyond all."""
    limits, zero = np.array(shape, np.int64), np.zeros((), np.int64)
    inside = node.add(
        And, node.add(GreaterEqual, positions, zero), node.add(Less, positions, limits)
    )
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    products = node.add(Mul, positions, np.array(strides, np.int64))
    last = rank_of(positions) - 1
    numbers = node.add(ReduceSum, products, (last,), False)
    beyond = np.array(math.prod(shape), np.int64)
    return node.add(Where, node.add(ReduceAll, inside, (last,), False), numbers, beyond)


def _positions(node: Node, starts: Operand, mapped: Sequence[int], sizes: Sequence[int]) -> Operand:
    """Return the position of each element of all windows: starts' axes, then windows', then rank.

    Args:
        node: the operator.
        starts: the starts of the windows on the mapped axes, along the last axis.
        mapped: the axes of the operand.
        sizes: the sizes of a window on all axes of the operand.
    """
    batch, rank = rank_of(starts) - 1, len(sizes)
    zeros = node.add(Slice, starts, axes=(batch,), starts=(0,), ends=(1,))
    zeros = node.add(Clip, zeros, 0, 0)
    columns = [mapped.index(axis) if axis in mapped else len(mapped) for axis in range(rank)]
    extended = node.add(Concat, parts=[starts, zeros], axis=batch)
    full = node.add(Gather, extended, np.array(columns, np.int64), axis=batch)
    spread = node.add(Unsqueeze, full, axes=tuple(range(batch, batch + rank)))
    return node.add(Add, spread, node.constant(_grid(sizes)))


def _index_vectors(node: Node, indices: Operand, axis: int) -> Operand:
    """Return index vectors, int64, along the last axis; an axis beyond it is one of scalars."""
    indices = node.add(Cast, indices, ElementType.INT64)
    rank = rank_of(indices)
    if axis == rank:
        return node.add(Unsqueeze, indices, axes=(rank,))
    return node.transpose(indices, (*(each for each in range(rank) if each != axis), axis))


def _grid(sizes: Sequence[int]) -> Array:
    """Return all positions in a window [sizes..., len(sizes)], int64."""
    spend(bytes=8 * math.prod(sizes) * len(sizes))
    return np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).astype(np.int64)
