"""Attention."""

from __future__ import annotations

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import FLOAT_TYPES, converts
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.attention import Attention, Causality


def _check_attention(op: Attention) -> Refusal | None:
    if op.causality is not Causality.NONE:
        return Refusal("causality", f"{op.causality.name} is what a mask says here")
    if op.softcap:
        return Refusal("softcap", f"{op.softcap:g} is not 0")
    if op.factor is None:
        return Refusal("query", "its last size must be known", Rule.SHAPE)
    if any(len(shape_of(operand)) != 4 for operand in (op.query, op.key, op.value)):
        return Refusal("query", "heads must have an axis of their own", Rule.SHAPE)
    heads = [shape_of(operand)[1] for operand in (op.query, op.key)]
    if not all(isinstance(size, int) for size in heads):
        return Refusal("query", "the number of heads must be known", Rule.SHAPE)
    return None


@converts(Attention, types=FLOAT_TYPES | {ElementType.BOOL}, limit=_check_attention, nonempty=True)
def attention(g: Graph, op: Attention) -> Node:
    scale = g.number(op.factor or 0, op.query)
    mask = g[op.mask] if op.mask else g.number(0, op.query)
    return ops.scaled_dot_product_attention(g[op.query], g[op.key], g[op.value], mask, scale)
