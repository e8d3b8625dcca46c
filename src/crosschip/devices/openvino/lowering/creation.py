"""Tensors computed from a shape."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Builder, Operand
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.layout import Reshape


def number_itself(b: Builder, op: Fill) -> Sequence[Operand] | None:
    """Replace a fill of rank 0 by its value (quirk `broadcast-to-no-axes`)."""
    if op.outputs[0].type.shape != ():
        return None
    if op.value.value is not None:
        return (b.constant(op.value.value.reshape(())),)
    return (op.value if op.value.type.shape == () else b.add(Reshape, op.value, ()),)
