"""Attention and rotary embedding, as operators of ONNX Runtime."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import NARROW_FLOATS, SINGLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.attention import Attention, Causality, RotaryEmbedding

_HEADS_LAST = [0, 2, 1, 3]
_PARTS = ("query", "key", "value")


def _attention_limit(op: Attention) -> Refusal | None:
    if any(op.operand(slot).type.shape is None for slot in _PARTS):  # type: ignore[union-attr]
        return Refusal("query", "its rank must be known, and those of key and value", Rule.SHAPE)
    if op.mask is not None and op.mask.type.shape is None:
        return Refusal("mask", "its rank must be known", Rule.SHAPE)
    shapes = [op.with_heads_axis(slot) for slot in _PARTS]
    if any(not isinstance(size, int) for shape in shapes for size in shape[1::2]):
        return Refusal("query", "the numbers and sizes of heads must be known", Rule.SHAPE)
    if len({shape[1] for shape in shapes}) > 1:
        return Refusal("key", "heads of queries share it", Rule.SHAPE)
    if len(shape_of(op.key)) == 4 and shapes[0][2] != shapes[1][2]:
        # ONNX Runtime's kernel is 10 % slower here than its fusion of the decomposition.
        return Refusal("key", "of other sizes than queries, with heads apart", Rule.SHAPE)
    if op.causality is not Causality.NONE and shapes[0][2] != shapes[1][2]:
        return Refusal("causality", "goes with as many keys as queries")
    return Refusal("softcap", f"{op.softcap:g} is not 0") if op.softcap else None


@converts(Attention, types=SINGLE | {ElementType.BOOL}, limit=_attention_limit, nonempty=True)
def attention(g: Graph, op: Attention) -> str:
    shape, keys, values = (op.with_heads_axis(slot) for slot in _PARTS)
    key, value = _with_heads_joined(g, op, "key"), _with_heads_joined(g, op, "value")
    bias = ""
    if op.mask is not None:
        bias = g.once(("bias", op.mask, shape[2], keys[2]), lambda: _bias(g, op))
    output = g.add_contributed(
        *("MultiHeadAttention", _with_heads_joined(g, op, "query"), key, value, "", "", bias),
        num_heads=shape[1],
        scale=op.scale or None,
        # With fewer queries than keys, it aligns the last query with the last key.
        unidirectional=int(op.causality is not Causality.NONE),
    )
    if len(shape_of(op.query)) == 3:
        return output
    split_heads = g.add("Reshape", output, g.int64([0, 0, _int(shape[1]), _int(values[3])]))
    return g.add("Transpose", split_heads, perm=_HEADS_LAST)


def _with_heads_joined(g: Graph, op: Attention, slot: str) -> str:
    """Return queries, keys or values as [N, S, H * D]."""
    operand = op.operand(slot)
    assert operand is not None, "it is required"
    if len(shape_of(operand)) == 3:
        return g[operand]
    _, heads, _, size = shape_of(operand)
    transposed = g.add("Transpose", g[operand], perm=_HEADS_LAST)
    return g.add("Reshape", transposed, g.int64([0, 0, _int(heads) * _int(size)]))


def _int(size: object) -> int:
    assert isinstance(size, int), "the limit requires it"
    return size


def _bias(g: Graph, op: Attention) -> str:
    """Return the mask as an additive bias in a shape that ONNX Runtime supports."""
    assert op.mask is not None, "checked by the caller"
    mask, shape = g[op.mask], shape_of(op.mask)
    if op.mask.type.element_type is ElementType.BOOL:
        zero, least = (g.constant(np.array(value, np.float32)) for value in (0, -np.inf))
        mask = g.add("Where", mask, zero, least)
    rows, columns = op.with_heads_axis("query")[2], op.with_heads_axis("key")[2]
    if len(shape) == 4 and shape[2:] == (rows, columns):
        return mask
    # A mask that has the size of the keys keeps it: Expand to 1 changes nothing.
    sizes = [_size(g, op.query), g.int64([1]) if columns in shape[-1:] else _size(g, op.key)]
    return g.add("Expand", mask, g.add("Concat", g.int64([1, 1]), *sizes, axis=0))


def _size(g: Graph, operand: Operand) -> str:
    """Return the number of queries or keys as a list of one integer."""
    axis = len(shape_of(operand)) - 2
    size = shape_of(operand)[axis]
    if isinstance(size, int):
        return g.int64([size])
    return g.add("Shape", g[operand], start=axis, end=axis + 1)


def _rotary_limit(op: RotaryEmbedding) -> Refusal | None:
    shape, tables = op.input.type.shape, op.cos.type.shape
    if op.positions is None:
        return Refusal("positions", "are left out")
    if shape is None or tables is None or shape[0] != (op.positions.type.shape or (None,))[0]:
        return Refusal("positions", "must be those of each entry", Rule.SHAPE)
    size = shape[-1] if len(shape) == 4 else None
    if len(shape) == 3 and isinstance(shape[2], int):
        size = shape[2] // op.num_heads
    if not all(isinstance(number, int) for number in (size, *tables)):
        return Refusal("cos", "its sizes must be known, and those of a head", Rule.SHAPE)
    return Refusal("cos", "does not rotate whole heads") if 2 * tables[1] != size else None


@converts(RotaryEmbedding, types=NARROW_FLOATS | INDICES, limit=_rotary_limit, nonempty=True)
def rotary_embedding(g: Graph, op: RotaryEmbedding) -> str:
    assert op.positions is not None, "the limit requires it"
    positions = g.cast(g[op.positions], np.int64)
    return g.add_contributed(
        *("RotaryEmbedding", g[op.input], positions, g[op.cos], g[op.sin]),
        interleaved=int(op.interleaved),
        num_heads=op.num_heads or None,
    )
