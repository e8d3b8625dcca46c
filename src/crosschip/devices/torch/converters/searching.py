"""Searches: extremes, the largest elements, non-zero and unique elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import COMPUTED, converts, same
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, SearchSorted, TopK, Unique


def _index_of(find: Kernel) -> Callable[[ArgMax | ArgMin], Kernel]:
    """Return a converter to a function that returns the index of the first extreme."""

    def convert(op: ArgMax | ArgMin) -> Kernel:
        axis, keepdim, last = op.axis, op.keepdim, op.select_last

        def run(x: torch.Tensor) -> torch.Tensor:
            if not last:
                return find(x, axis, keepdim)
            return x.shape[axis] - 1 - find(x.flip(axis), axis, keepdim)

        return run

    return convert


converts(ArgMax)(_index_of(torch.argmax))
converts(ArgMin)(_index_of(torch.argmin))
converts(NonZero)(same(lambda x: torch.nonzero(x).T))


@converts(TopK, types=COMPUTED)
def top_k(op: TopK) -> Kernel:
    k, axis, largest = op.k, op.axis, op.largest

    def run(x: torch.Tensor) -> Sequence[torch.Tensor]:
        values, indices = torch.sort(x, dim=axis, descending=largest, stable=True)
        return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)

    return run


@converts(Unique)
def unique(op: Unique) -> Kernel:
    axis, is_sorted = op.axis, op.sorted

    def run(x: torch.Tensor) -> Sequence[torch.Tensor]:
        if axis is not None and not x.numel():
            return equal_slices(x, axis)
        values, inverse, counts = (
            torch.unique(x, return_inverse=True, return_counts=True)
            if axis is None
            else torch.unique(x, return_inverse=True, return_counts=True, dim=axis)
        )
        inverse = inverse.reshape(-1)
        numbers = torch.arange(inverse.numel(), device=x.device)
        first = torch.full_like(counts, inverse.numel()).scatter_reduce(0, inverse, numbers, "amin")
        if not is_sorted:
            order = torch.argsort(first)
            values = values.index_select(0 if axis is None else axis, order)
            first, counts, inverse = first[order], counts[order], torch.argsort(order)[inverse]
        return values, first, inverse, counts

    return run


def equal_slices(x: torch.Tensor, axis: int) -> Sequence[torch.Tensor]:
    """Return the results for slices without elements, all of which are equal.

    Quirk `unique-slices-of-nothing`.
    """
    count = x.shape[axis]
    places = torch.zeros(count, dtype=torch.int64, device=x.device)
    first = places[:1]
    return x.narrow(axis, 0, len(first)), first, places, torch.full_like(first, count)


@converts(SearchSorted)
def search_sorted(op: SearchSorted) -> Kernel:
    right = op.right

    def run(sequence: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        if sequence.ndim > 1:
            batch = torch.broadcast_shapes(sequence.shape[:-1], values.shape[:-1])
            sequence = sequence.expand(*batch, sequence.shape[-1])
            values = values.expand(*batch, values.shape[-1])
        return torch.searchsorted(sequence.contiguous(), values.contiguous(), right=right)

    return run
