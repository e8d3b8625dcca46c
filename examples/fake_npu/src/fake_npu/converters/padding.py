"""Padding with zeros."""

from __future__ import annotations

import numpy as np

from crosschip.hal import Refusal
from crosschip.ops.standard.padding import Pad, PadMode
from fake_npu.assembly import Assembly
from fake_npu.converters.table import MOVED, converters
from fake_npu.forms import TO_CHIP
from fake_npu_ddk import Operator, Settings


def _zeros(op: Pad) -> Refusal | None:
    if op.mode not in (PadMode.NONE, PadMode.CONSTANT):
        return Refusal("mode", op.mode.name)
    if op.value is not None and (op.value.value is None or np.any(op.value.value)):
        return Refusal("value", "must be zero")
    if op.value is not None and op.value.type.quantization is not None:
        return Refusal("value", "is quantized")
    return None


@converters.converts(Pad, types=MOVED, limit=_zeros)
def pad(g: Assembly, op: Pad) -> int:
    rank = len(op.input.type.shape or ())
    order = TO_CHIP if rank == 4 else range(rank)
    pads = [side for axis in order for side in op.pads[2 * axis : 2 * axis + 2]]
    return g.add(Operator.PAD, [g[op.input]], op, Settings(pads=tuple(pads)))
