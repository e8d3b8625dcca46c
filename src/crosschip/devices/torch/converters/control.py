"""Assertions."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.standard.control import Assert


@converts(Assert, types=ALL_TYPES, narrow=True)
def assert_(op: Assert) -> Kernel:
    def run(condition: torch.Tensor, data: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        if not bool(condition.all()):
            raise ValueError("condition: does not hold")
        return data if len(data) > 1 else data[0]

    return run
