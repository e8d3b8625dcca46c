"""Blocks of images moved between axes, by reshapes and transpositions."""

from __future__ import annotations

from typing import TypeAlias

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.standard import blocks

Blocks: TypeAlias = (
    blocks.BatchToSpaceND
    | blocks.ChannelShuffle
    | blocks.DepthToSpace
    | blocks.SpaceToBatchND
    | blocks.SpaceToDepth
)


@converts(blocks.ChannelShuffle, blocks.DepthToSpace, blocks.SpaceToDepth)
def move_blocks(op: Blocks) -> Kernel:
    return lambda x: _move(op, x)


@converts(blocks.BatchToSpaceND)
def batch_to_space(op: blocks.BatchToSpaceND) -> Kernel:
    crops = op.crops

    def run(x: torch.Tensor) -> torch.Tensor:
        x = _move(op, x)
        for axis, (before, after) in enumerate(zip(crops[::2], crops[1::2], strict=True), 2):
            x = x.narrow(axis, before, x.shape[axis] - before - after)
        return x

    return run


@converts(blocks.SpaceToBatchND)
def space_to_batch(op: blocks.SpaceToBatchND) -> Kernel:
    pads = op.pads
    reverse = [pad for end in range(len(pads), 0, -2) for pad in pads[end - 2 : end]]
    return lambda x: _move(op, torch.constant_pad_nd(x, reverse, 0))


def _move(op: Blocks, x: torch.Tensor) -> torch.Tensor:
    split, perm, merged = op.plan(tuple(x.shape))
    return x.reshape(split).permute(*perm).reshape(merged)
