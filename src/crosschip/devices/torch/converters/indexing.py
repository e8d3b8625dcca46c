"""Gather and scatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ir import Dim, Operand
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.standard import indexing
from crosschip.ops.standard.indexing import Scatter

_REDUCTIONS = {
    Scatter.ADD: "sum",
    Scatter.MUL: "prod",
    Scatter.MAX: "amax",
    Scatter.MIN: "amin",
}


def within(indices: torch.Tensor, size: int) -> torch.Tensor:
    """Return non-negative int64 indices.

    Raises:
        IndexError: one is not in `[-size, size)`.
    """
    indices = indices.long()
    if not indices.numel():
        return indices
    least, greatest = (int(extreme) for extreme in torch.aminmax(indices))
    if least < -size or greatest >= size:
        raise IndexError(f"indices: one is not in [-{size}, {size})")
    return indices if least >= 0 else torch.where(indices < 0, indices + size, indices)


def check_of(indices: Operand, size: Dim | None) -> Callable[[torch.Tensor, int], torch.Tensor]:
    """Return `within`, or less for constant indices that are known to need no check.

    Args:
        indices: the operand of the indices.
        size: the size of the indexed axis, if it is known.
    """
    value = indices.value
    if value is None or not value.size or not isinstance(size, int):
        return within
    fits = value.min() >= 0 and value.max() < size
    return (lambda places, _: places.long()) if fits else within


@converts(indexing.Gather)
def gather(op: indexing.Gather) -> Kernel:
    axis, shape = op.axis, op.input.type.shape
    check = check_of(op.indices, shape[axis] if shape else None)

    def run(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        at = axis % x.ndim
        positions = check(indices, x.shape[at])
        sizes = (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])
        return x.index_select(at, positions.reshape(-1)).reshape(sizes)

    return run


@converts(indexing.GatherElements)
def gather_elements(op: indexing.GatherElements) -> Kernel:
    axis = op.axis
    return lambda x, indices: torch.gather(x, axis, within(indices, x.shape[axis]))


@converts(indexing.GatherND)
def gather_nd(op: indexing.GatherND) -> Kernel:
    batch = op.batch_dims

    def run(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        count = indices.shape[-1]
        sizes = x.shape[: batch + count]
        after = indices.ndim - 1 - batch
        own = [
            torch.arange(size, device=x.device).reshape((-1,) + (1,) * (batch - 1 - axis + after))
            for axis, size in enumerate(sizes[:batch])
        ]
        linear = _linear([*own, *_parts(indices, sizes[batch:])], sizes, indices.shape[:-1])
        rows = x.reshape((math.prod(sizes), *x.shape[batch + count :]))
        selected = rows.index_select(0, linear.reshape(-1).to(x.device))
        return selected.reshape((*indices.shape[:-1], *x.shape[batch + count :]))

    return run


@converts(indexing.ScatterND, types=ALL_TYPES)
def scatter_nd(op: indexing.ScatterND) -> Kernel:
    reduction = op.reduction

    def run(x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        count = indices.shape[-1]
        sizes, rest = x.shape[:count], x.shape[count:]
        linear = _linear(_parts(indices, sizes), sizes, indices.shape[:-1]).reshape(-1)
        width = math.prod(rest)
        rows = x.reshape(math.prod(sizes), width)
        places = linear[:, None].expand(linear.numel(), width)
        return _scatter(rows, 0, places, updates.reshape(linear.numel(), width), reduction).reshape(
            x.shape
        )

    return run


@converts(indexing.ScatterElements, types=ALL_TYPES)
def scatter_elements(op: indexing.ScatterElements) -> Kernel:
    axis, reduction = op.axis, op.reduction

    def run(x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        return _scatter(x, axis, within(indices, x.shape[axis]), updates, reduction)

    return run


@converts(indexing.SparseToDense, types=ALL_TYPES, narrow=True)
def sparse_to_dense(op: indexing.SparseToDense) -> Kernel:
    shape = op.shape

    def run(
        indices: torch.Tensor, values: torch.Tensor, default: torch.Tensor | None
    ) -> torch.Tensor:
        base = values.new_zeros(()) if default is None else default.reshape(())
        flat = base.expand(math.prod(shape))
        places = _linear(_parts(indices, shape), shape, indices.shape[:-1])
        return flat.scatter(0, places, values).reshape(shape)

    return run


def _parts(indices: torch.Tensor, sizes: Sequence[int]) -> list[torch.Tensor]:
    """Return the indices of each axis, from their last axis."""
    return [within(indices[..., axis], size) for axis, size in enumerate(sizes)]


def _linear(
    parts: Sequence[torch.Tensor], sizes: Sequence[int], shape: Sequence[int]
) -> torch.Tensor:
    """Return the offsets of index tuples in a tensor of these sizes, in C order."""
    offsets = torch.zeros(shape, dtype=torch.int64, device=parts[0].device if parts else None)
    for part, size in zip(parts, sizes, strict=True):
        offsets = offsets * size + part
    return offsets


def _scatter(
    x: torch.Tensor,
    axis: int,
    places: torch.Tensor,
    updates: torch.Tensor,
    reduction: Scatter,
) -> torch.Tensor:
    if reduction is Scatter.NONE:
        return x.scatter(axis, places, updates)
    return x.scatter_reduce(axis, places, updates, _REDUCTIONS[reduction])
