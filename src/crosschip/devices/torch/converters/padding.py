"""Padding."""

from __future__ import annotations

from itertools import chain

import numpy as np
import torch

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.devices.torch.elements import CARRIED
from crosschip.ops.standard.padding import NUMPY_MODES, Pad


@converts(Pad)
def pad(op: Pad) -> Kernel:
    sides = list(zip(op.pads[::2], op.pads[1::2], strict=True))
    if op.mode in NUMPY_MODES:
        return _repeating(sides, NUMPY_MODES[op.mode])
    reverse = list(chain.from_iterable(reversed(sides)))
    if op.value is not None and (op.value.value is None or op.value.type.element_type in CARRIED):
        return lambda x, value: torch.constant_pad_nd(x, reverse, value.item())
    number = 0 if op.value is None or op.value.value is None else op.value.value.item()
    return lambda x, value: torch.constant_pad_nd(x, reverse, number)


def _repeating(sides: list[tuple[int, int]], mode: str) -> Kernel:
    """Return the padding with elements of the tensor, which are selected by their indices."""

    def run(x: torch.Tensor, value: torch.Tensor | None) -> torch.Tensor:
        for axis, (before, after) in enumerate(sides):
            if before or after:
                part = np.arange(x.shape[axis])[max(0, -before) : x.shape[axis] - max(0, -after)]
                sources = np.pad(part, (max(0, before), max(0, after)), mode)  # type: ignore[call-overload]
                x = x.index_select(axis, torch.from_numpy(sources).to(x.device))
        return x

    return run
