"""Tensors made from a description, and descriptions of tensors."""

from __future__ import annotations

import math

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.devices.torch.elements import inner
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.standard import creation


@converts(creation.ShapeOf)
def shape_of(op: creation.ShapeOf) -> Kernel:
    dtype = inner(op.dtype)
    return lambda x: torch.tensor(x.shape, dtype=dtype, device=x.device)


@converts(creation.Rank)
def rank(op: creation.Rank) -> Kernel:
    return lambda x: torch.tensor(x.ndim, dtype=torch.int32, device=x.device)


@converts(creation.Fill)
def fill(op: creation.Fill) -> Kernel:
    shape = op.shape
    return lambda value: value.reshape(()).expand(shape)


@converts(creation.FillLike, types=ALL_TYPES, narrow=True)
def fill_like(op: creation.FillLike) -> Kernel:
    return lambda x, value: value.reshape(()).expand(x.shape)


@converts(creation.Range)
def range_(op: creation.Range) -> Kernel:
    exact = op.start.type.element_type.dtype.kind in "iu"

    def run(start: torch.Tensor, end: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        first, last, by = (value.item() for value in (start, end, step))
        count = _count(first, last, by)
        if exact:
            numbers = torch.arange(count, dtype=start.dtype, device=start.device)
            return start.reshape(1) + numbers * step.reshape(1)
        numbers = torch.arange(count, dtype=torch.float64, device=start.device)
        return (first + numbers * by).to(start.dtype)

    return run


def _count(start: float, end: float, step: float) -> int:
    """Return the number of elements of a range.

    Raises:
        ValueError: a number is not finite, or the step is 0.
    """
    if not all(map(math.isfinite, (start, end, step))):
        raise ValueError(f"start: {start} to {end} by {step} never ends")
    if step == 0:
        raise ValueError("step: must not be 0")
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return max(0, -((start - end) // step))
    return max(0, math.ceil((end - start) / step))


@converts(creation.OneHot, types=ALL_TYPES, narrow=True)
def one_hot(op: creation.OneHot) -> Kernel:
    depth, axis = op.depth, op.axis

    def run(indices: torch.Tensor, on: torch.Tensor, off: torch.Tensor) -> torch.Tensor:
        positions = indices.long()
        positions = torch.where(positions < 0, positions + depth, positions)
        numbers = torch.arange(depth, device=indices.device)
        hot = torch.movedim(positions[..., None] == numbers, -1, axis)
        return torch.where(hot, on.reshape(()), off.reshape(()))

    return run
