"""Joining tensors."""

from __future__ import annotations

from crosschip.ops.standard.joining import Concat
from fake_npu.assembly import Assembly
from fake_npu.converters.table import MOVED, bytes_in, converters
from fake_npu.forms import TO_CHIP
from fake_npu_ddk import Operator, Settings


@converters.converts(Concat, types=MOVED, quantized=bytes_in("parts"))
def concat(g: Assembly, op: Concat) -> int:
    rank = len(op.outputs[0].type.shape or ())
    axis = op.axis % rank
    settings = Settings(axis=TO_CHIP.index(axis) if rank == 4 else axis)
    return g.add(Operator.CONCATENATE, [g[part] for part in op.parts], op, settings)
