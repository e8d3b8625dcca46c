"""Other shapes and orders of axes. Elements have the model's order, so images are turned before."""

from __future__ import annotations

from crosschip.ops.definition.kinds import Layout
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.layout import Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from fake_npu.assembly import Assembly
from fake_npu.converters.table import MOVED, bytes_in, converters
from fake_npu_ddk import Operator


@converters.converts(Reshape, Flatten, Squeeze, Unsqueeze, types=MOVED)
def reshape(g: Assembly, op: Layout) -> int:
    shape = op.outputs[0].type.static_shape or ()
    return g.shaped(g.plain(op.input), shape, op.input)


@converters.converts(Transpose, types=MOVED)
def transpose(g: Assembly, op: Transpose) -> int:
    shape = op.outputs[0].type.static_shape or ()
    order = [axis % len(shape) for axis in op.perm] or [0]
    return g.shaped(g.turned(g.plain(op.input), order), shape, op.input)


@converters.converts(Assign, types=MOVED, quantized=bytes_in("input"))
def assign(g: Assembly, op: Assign) -> int:
    return g.add(Operator.RESCALE, [g[op.input]], op)
