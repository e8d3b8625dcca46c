"""What transformers are made of."""

from __future__ import annotations

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import FLOAT_TYPES, converts
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import Dim, ElementType, Operand
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.attention import Attention, Causality


def _plain(op: Attention) -> Refusal | None:
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


@converts(Attention, types=FLOAT_TYPES | {ElementType.BOOL}, limit=_plain, nonempty=True)
def attention(g: Graph, op: Attention) -> Node:
    heads = [shape_of(operand)[1] for operand in (op.query, op.key)]
    key, value = (_shared(g, operand, *heads) for operand in (op.key, op.value))
    scale = g.number(op.factor or 0, op.query)
    mask = g[op.mask] if op.mask else g.number(0, op.query)
    return ops.scaled_dot_product_attention(g[op.query], key, value, mask, scale)


def _shared(g: Graph, operand: Operand, heads: Dim, own: Dim) -> Value:
    """Keys or values with a head for each of the query's."""
    assert isinstance(heads, int), "supports() asks for it"
    assert isinstance(own, int), "supports() asks for it"
    if heads == own:
        return g[operand]
    apart = ops.unsqueeze(g[operand], g.scalar(2))
    shape = g.int64([1, 1, heads // own, 1, 1])
    repeated = ops.broadcast(apart, shape, broadcast_spec="bidirectional")
    size = shape_of(operand)[3]
    together = [0, heads, -1, size] if isinstance(size, int) else None
    if together is None:
        whole = ops.shape_of(g[operand])
        entries, rest = (ops.gather(whole, g.int64(axes), g.scalar(0)) for axes in ((0,), (2, 3)))
        return ops.reshape(repeated, ops.concat([entries, g.int64([heads]), rest], 0), False)
    return ops.reshape(repeated, g.int64(together), True)
