"""Boolean and bitwise operators."""

from __future__ import annotations

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import WITH_UINT64, converts, same
from crosschip.ops.standard import logical
from crosschip.ops.standard.logical import ShiftDirection

converts(logical.Not)(same(torch.logical_not))
converts(logical.And)(same(torch.logical_and))
converts(logical.Or)(same(torch.logical_or))
converts(logical.Xor)(same(torch.logical_xor))
converts(logical.Where)(same(torch.where))
converts(logical.BitwiseNot, types=WITH_UINT64)(same(torch.bitwise_not))
converts(logical.BitwiseAnd, types=WITH_UINT64)(same(torch.bitwise_and))
converts(logical.BitwiseOr, types=WITH_UINT64)(same(torch.bitwise_or))
converts(logical.BitwiseXor, types=WITH_UINT64)(same(torch.bitwise_xor))


@converts(logical.BitShift)
def bit_shift(op: logical.BitShift) -> Kernel:
    if op.direction is ShiftDirection.LEFT:
        return torch.bitwise_left_shift
    return torch.bitwise_right_shift
