"""Attention with a key-value cache, as ONNX Runtime's `GroupQueryAttention`."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import SINGLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir.types import INDICES
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.cached_attention import GroupQueryAttention

_RANK = 3
"""The rank of queries, keys and values: [batch, tokens, heads * head size]."""


def _limit(op: GroupQueryAttention) -> Refusal | None:
    if not isinstance(op.head_size, int):
        return Refusal("query", "its last size must be known", Rule.SHAPE)
    if op.head_size % (8 if op.cos is None else 16):
        return Refusal("query", f"heads of {op.head_size} numbers", Rule.SHAPE)
    half = None if op.cos is None else shape_of(op.cos)[1]
    if half is not None and (not isinstance(half, int) or half % 8):
        return Refusal("cos", f"{half} angles are no multiple of 8", Rule.SHAPE)
    return None


@converts(GroupQueryAttention, types=SINGLE | INDICES, limit=_limit, nonempty=True)
def group_query_attention(g: Graph, op: GroupQueryAttention) -> list[str]:
    tensors = _unsplit(g, [g[operand] for operand in (op.query, op.key, op.value)])
    past = [g[operand] if operand else "" for operand in (op.past_key, op.past_value)]
    counts = [g.cast(g[op.lengths], np.int32), g.cast(g.as_scalar(op.total), np.int32)]
    tables = [g[operand] if operand else "" for operand in (op.cos, op.sin)]
    inputs = [*tensors, *past, *counts, *tables]
    return g.add_all_contributed(
        "GroupQueryAttention",
        3,
        *inputs,
        num_heads=op.num_heads,
        kv_num_heads=op.key_heads,
        scale=op.scale or None,
        softcap=op.softcap or None,
        local_window_size=op.window or -1,
        do_rotary=int(op.cos is not None),
        rotary_interleaved=int(op.interleaved),
    )


def _unsplit(g: Graph, parts: list[str]) -> list[str]:
    """Return the tensor that a `Split` into queries, keys and values reads, else the parts.

    ONNX Runtime reads the packed tensor in place; the split copies it.
    """
    node = g.producer(parts[0])
    if node is None or node.op_type != "Split" or list(node.output) != parts:
        return parts
    axis = next(attribute.i for attribute in node.attribute if attribute.name == "axis")
    if axis % _RANK != _RANK - 1:
        return parts
    g.remove_if_unread(parts[0])
    return [node.input[0], "", ""]
