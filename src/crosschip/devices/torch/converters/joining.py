"""Concatenation and splitting."""

from __future__ import annotations

from functools import partial

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.standard import joining


@converts(joining.Concat)
def concat(op: joining.Concat) -> Kernel:
    return partial(torch.cat, dim=op.axis)


@converts(joining.Stack)
def stack(op: joining.Stack) -> Kernel:
    return partial(torch.stack, dim=op.axis)


@converts(joining.Split)
def split(op: joining.Split) -> Kernel:
    sizes, axis = list(op.split), op.axis
    return lambda x: x if len(sizes) == 1 else torch.split(x, sizes, axis)


@converts(joining.Unstack)
def unstack(op: joining.Unstack) -> Kernel:
    axis, count = op.axis, op.output_count()
    return lambda x: x.squeeze(axis) if count == 1 else torch.unbind(x, axis)


@converts(joining.Meshgrid)
def meshgrid(op: joining.Meshgrid) -> Kernel:
    count = len(op.parts)
    return lambda parts: parts[0] if count == 1 else torch.meshgrid(*parts, indexing="ij")
