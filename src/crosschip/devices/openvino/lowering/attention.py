"""Attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, Operand
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.attention import Attention
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.passes.rewrite_operations import rebuild


def repeat_shared_heads(b: Builder, op: Attention) -> Sequence[Operand] | None:
    """Repeat keys and values that query heads share: OpenVINO expects one of each per head."""
    heads, shared = (shape_of(operand)[1] for operand in (op.query, op.key))
    if heads == shared:
        return None
    assert isinstance(heads, int), "supports() asks for it"
    assert isinstance(shared, int), "supports() asks for it"
    key, value = (_repeat_heads(b, operand, heads, shared) for operand in (op.key, op.value))
    return (rebuild(b, op, key=key, value=value),)


def _repeat_heads(b: Builder, operand: Operand, heads: int, shared: int) -> Operand:
    separate = b.add(Unsqueeze, operand, (2,))
    repeated = b.add(Expand, separate, (1, 1, heads // shared, 1, 1))
    size = shape_of(operand)[3]
    if isinstance(size, int):
        return b.add(Reshape, repeated, (0, heads, -1, size))
    sizes = b.add(ShapeOf, operand)
    entries, tail = (b.add(Gather, sizes, np.array(axes)) for axes in ((0,), (2, 3)))
    count = b.constant(np.array([heads], entries.type.element_type.dtype))
    return b.add(Reshape, repeated, b.add(Concat, [entries, count, tail], 0), allow_zero=True)
