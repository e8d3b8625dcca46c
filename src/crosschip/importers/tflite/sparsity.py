"""Sparse tensors of TensorFlow Lite files, made dense."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite import DimensionMetadata, SparsityParameters
from crosschip.flatbuffer.schemas.tflite.enumerations import DimensionType
from crosschip.ir import Array, ModelFileError


def dense(
    values: Array, sparsity: SparsityParameters, shape: tuple[int, ...], name: str | None
) -> Array:
    """Return the elements of a tensor from its nonzero elements.

    The levels of the format are the axes in `traversal_order`; those beyond the rank are axes of
    blocks, of which `block_map` says the axis that each divides. A dense level has all indices, a
    compressed one lists those of each parent.

    Raises:
        ModelFileError: the levels do not fit the shape or the number of elements.
    """
    try:
        return _dense(values, sparsity, shape)
    except (ValueError, IndexError, OverflowError) as error:
        raise ModelFileError(f"tensor {name!r}: its sparse levels do not fit: {error}") from None


def _dense(values: Array, sparsity: SparsityParameters, shape: tuple[int, ...]) -> Array:
    order = _integers(sparsity.traversal_order)
    block_map = _integers(sparsity.block_map)
    levels = sparsity.dim_metadata
    if sorted(order) != list(range(len(levels))) or len(order) != len(shape) + len(block_map):
        raise ValueError(f"{order} are not the axes of {list(shape)} and {block_map}")
    sizes = _level_sizes(order, block_map, levels, shape)
    parents = np.zeros((1, 0), np.int64)
    for level, metadata in enumerate(levels):
        parents = _descend(parents, metadata, sizes[level], math.prod(shape))
    if len(parents) != len(values):
        raise ValueError(f"there are {len(parents)} indices for {len(values)} elements")
    blocked = np.zeros([sizes[order.index(axis)] for axis in range(len(order))], values.dtype)
    blocked[tuple(parents[:, order.index(axis)] for axis in range(len(order)))] = values
    return _join_blocks(blocked, block_map, shape)


def _level_sizes(
    order: Sequence[int],
    block_map: Sequence[int],
    levels: Sequence[DimensionMetadata],
    shape: tuple[int, ...],
) -> list[int]:
    """Return the size of the axis of each level."""
    rank = len(shape)
    block_sizes = [levels[order.index(rank + n)].dense_size for n in range(len(block_map))]
    if len(set(block_map)) < len(block_map) or min(block_sizes, default=1) < 1:
        raise ValueError(f"{block_map} of sizes {block_sizes} are no blocks")
    outer = list(shape)
    for axis, size in zip(block_map, block_sizes, strict=True):
        if not 0 <= axis < rank or outer[axis] % size:
            raise ValueError(f"blocks of {size} do not divide {list(shape)}")
        outer[axis] //= size
    axis_sizes = outer + block_sizes
    return [axis_sizes[axis] for axis in order]


def _descend(parents: Array, level: DimensionMetadata, size: int, limit: int) -> Array:
    """Return the indices up to a level, for each of those up to the level before."""
    if level.format == DimensionType.DENSE:
        if len(parents) * size > limit:
            raise ValueError(f"more than the {limit} elements")
        steps = np.tile(np.arange(size, dtype=np.int64), len(parents))
        return np.concatenate([np.repeat(parents, size, axis=0), steps[:, None]], axis=1)
    segments = np.array(_integers(_values(level.array_segments)), np.int64)
    indices = np.array(_integers(_values(level.array_indices)), np.int64)
    counts = np.diff(segments)
    if len(segments) != len(parents) + 1 or (counts < 0).any() or segments[0] != 0:
        raise ValueError("segments that do not ascend from 0")
    if segments[-1] != len(indices) or len(indices) > limit:
        raise ValueError(f"{len(indices)} indices in segments up to {segments[-1]}")
    if len(indices) and not 0 <= indices.min() <= indices.max() < size:
        raise ValueError(f"an index is beyond {size}")
    return np.concatenate([np.repeat(parents, counts, axis=0), indices[:, None]], axis=1)


def _join_blocks(blocked: Array, block_map: Sequence[int], shape: tuple[int, ...]) -> Array:
    """Return the tensor, with each axis of blocks moved behind the axis that it divides."""
    axes: list[int] = []
    for axis in range(len(shape)):
        axes.append(axis)
        if axis in block_map:
            axes.append(len(shape) + block_map.index(axis))
    return np.ascontiguousarray(blocked.transpose(axes)).reshape(shape)


def _values(vector: object) -> Array | None:
    return getattr(vector, "values", None)


def _integers(values: Array | None) -> list[int]:
    return [] if values is None else values.tolist()
