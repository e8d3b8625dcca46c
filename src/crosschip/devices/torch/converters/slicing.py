"""Slices."""

from __future__ import annotations

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.standard.slicing import Slice, python_slice


@converts(Slice)
def slice_(op: Slice) -> Kernel:
    axes = range(len(op.starts)) if op.axes is None else op.axes
    steps = op.steps or (1,) * len(op.starts)
    parts = {
        axis: python_slice(start, end, step)
        for axis, start, end, step in zip(axes, op.starts, op.ends, steps, strict=True)
    }

    def run(x: torch.Tensor) -> torch.Tensor:
        for axis, part in parts.items():
            x = _part(x, axis, part)
        return x

    return run


def _part(x: torch.Tensor, axis: int, part: slice) -> torch.Tensor:
    """Return a slice of an axis, also with a negative step, which PyTorch's slices do not have."""
    if part.step > 0:
        return torch.ops.aten.slice.Tensor(x, axis, part.start, part.stop, part.step)
    indices = range(x.shape[axis])[part]
    return x.index_select(axis, torch.tensor(indices, dtype=torch.int64, device=x.device))
