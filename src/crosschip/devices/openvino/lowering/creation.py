"""Tensors made from a description."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, ElementType, Operand
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, OneHot
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import Where
from crosschip.passes.rewrite_operations import rebuild


def number_itself(b: Builder, op: Fill) -> Sequence[Operand] | None:
    """Take the number for the tensor without axes that is filled with it: OpenVINO crashes."""
    if op.outputs[0].type.shape != ():
        return None
    if op.value.value is not None:
        return (b.constant(op.value.value.reshape(())),)
    return (op.value if op.value.type.shape == () else b.add(Reshape, op.value, ()),)


def indices_from_start(b: Builder, op: OneHot) -> Sequence[Operand]:
    """Count negative indices from the start, which OpenVINO takes for out of range; in int32."""
    indices = b.add(Cast, op.indices, ElementType.INT32)
    depth = op.operand("depth")
    if depth is None or depth.is_constant:
        size = b.constant(np.array(op.depth, np.int32))
    else:
        size = b.add(Reshape, b.add(Cast, depth, ElementType.INT32), ())
    is_negative = b.add(Less, indices, np.array(0, np.int32))
    return (rebuild(b, op, indices=b.add(Where, is_negative, b.add(Add, indices, size), indices)),)
