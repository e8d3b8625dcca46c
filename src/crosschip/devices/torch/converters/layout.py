"""Reshapes, transpositions and broadcasts."""

from __future__ import annotations

import math
from functools import partial

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze


@converts(Reshape)
def reshape(op: Reshape) -> Kernel:
    shape, copied = op.shape, () if op.allow_zero else [i for i, n in enumerate(op.shape) if n == 0]
    if not copied and -1 not in shape:
        return lambda x: x.reshape(shape)

    def run(x: torch.Tensor) -> torch.Tensor:
        sizes = [x.shape[axis] if axis in copied else size for axis, size in enumerate(shape)]
        if -1 in shape:
            remaining = math.prod(n for axis, n in enumerate(x.shape) if axis not in copied)
            new = (n for axis, n in enumerate(shape) if axis not in copied and n != -1)
            sizes[shape.index(-1)] = remaining // max(1, math.prod(new))
        return x.reshape(sizes)

    return run


@converts(Transpose)
def transpose(op: Transpose) -> Kernel:
    return partial(torch.permute, dims=op.perm)


@converts(Squeeze)
def squeeze(op: Squeeze) -> Kernel:
    return partial(torch.squeeze, dim=op.axes) if op.axes else torch.squeeze


@converts(Unsqueeze)
def unsqueeze(op: Unsqueeze) -> Kernel:
    axes = op.axes
    if len(axes) == 1:
        return partial(torch.unsqueeze, dim=axes[0])

    def run(x: torch.Tensor) -> torch.Tensor:
        for axis in sorted(axis % (x.ndim + len(axes)) for axis in axes):
            x = x.unsqueeze(axis)
        return x

    return run


@converts(Flatten)
def flatten(op: Flatten) -> Kernel:
    start, end = op.start_axis, op.end_axis
    return lambda x: torch.flatten(x, start, end) if x.ndim else x.reshape(1)


@converts(Expand)
def expand(op: Expand) -> Kernel:
    shape = tuple(1 if size == -1 else size for size in op.shape)
    return lambda x: x.expand(torch.broadcast_shapes(x.shape, shape))
