"""Tiling, rolling, reversal and triangular parts."""

from __future__ import annotations

from functools import partial

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu


@converts(Tile)
def tile(op: Tile) -> Kernel:
    return partial(torch.tile, dims=op.repeats)


@converts(Roll)
def roll(op: Roll) -> Kernel:
    if op.axes == ():
        return lambda x: x
    shifts, axes = op.shifts, op.axes
    return lambda x: torch.roll(x, shifts, axes) if x.numel() else x


@converts(ReverseSequence)
def reverse_sequence(op: ReverseSequence) -> Kernel:
    batch, time = op.batch_axis, op.time_axis

    def run(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        rows = torch.movedim(x, (batch, time), (0, 1))
        steps = rows.shape[1]
        if bool(((lengths < 0) | (lengths > steps)).any()):
            raise ValueError(f"lengths: one is not in [0, {steps}]")
        positions, ends = torch.arange(steps, device=x.device), lengths.long()[:, None]
        source = torch.where(positions < ends, ends - 1 - positions, positions)
        selected = rows[torch.arange(rows.shape[0], device=x.device)[:, None], source]
        return torch.movedim(selected, (0, 1), (batch, time))

    return run


@converts(Trilu, types=ALL_TYPES, narrow=True)
def trilu(op: Trilu) -> Kernel:
    k, part = op.k, torch.triu if op.upper else torch.tril

    def run(x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape[-2:]
        return part(x, max(-rows - 1, min(columns + 1, k)))

    return run
