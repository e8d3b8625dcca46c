"""Attention and rotary embeddings, of ONNX and of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.facts import rank_of
from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, imports, only
from crosschip.importers.onnx.operators.integers import add_integer_product, scale_product
from crosschip.ir import Dim, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Sub
from crosschip.ops.standard.attention import Attention, Causality, RotaryEmbedding
from crosschip.ops.standard.comparison import Equal, Less, LessEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceMax

_HEADS_LAST = (0, 2, 1, 3)
_FAR = -10000.0


def _split_heads(node: Node, operand: Operand, heads: int) -> Operand:
    """Return [N, heads, S, D] for an operand [N, S, heads * D]; rank 4 stays the same."""
    if rank_of(operand) == 4:
        return operand
    _check_heads(heads)
    return node.add(Transpose, node.add(Reshape, operand, (0, 0, heads, -1)), _HEADS_LAST)


def _check_heads(heads: int) -> None:
    if heads < 1:
        raise ModelError(f"num_heads is {heads}, but must be positive")


def _size(operand: Operand, axis: int) -> Dim:
    rank_of(operand)
    return (operand.type.shape or ())[axis]


def _length(operand: Operand) -> Dim:
    """Return the sequence length of queries, keys or values of rank 3 or 4."""
    return _size(operand, -2)


def _add_past(
    node: Node, key: Operand, value: Operand, past: Sequence[Operand | None], heads: int
) -> tuple[Operand, Operand]:
    """Return keys and values with those of earlier runs in front, if there are any.

    The heads have an axis if there are past keys or the node outputs keys and values.
    """
    old_keys, old_values = past
    if old_keys is None and old_values is None and not any(node.outputs[1:]):
        return key, value
    key, value = _split_heads(node, key, heads), _split_heads(node, value, heads)
    if old_keys is None and old_values is None:
        return key, value
    if old_keys is None or old_values is None:
        raise ModelError("past keys and past values must be given together")
    all_keys = node.add(Concat, [old_keys, key], 2)
    return all_keys, node.add(Concat, [old_values, value], 2)


def _dynamic_length(node: Node, operand: Operand) -> Operand:
    """Return the sequence length at run time, int64 of shape [1]."""
    axis = np.array([rank_of(operand) - 2])
    return node.add(Gather, node.add(ShapeOf, operand), axis, 0)


def _positions(node: Node, operand: Operand) -> Operand:
    """Return the positions 0, 1, … of queries or keys, in int32, which all devices support."""
    count = node.add(Cast, _dynamic_length(node, operand), ElementType.INT32)
    zero, one = (np.array(number, np.int32) for number in (0, 1))
    return node.add(Range, zero, count, one)


def _mask_addend(node: Node, hidden: Operand, like: Operand, far: float) -> Operand:
    """Return an addend for scores: `far` where `hidden` is true, else 0."""
    dtype = like.type.element_type.dtype
    numbers = (node.constant(np.array(value, dtype)) for value in (far, 0))
    return node.add(Where, hidden, *numbers)


def _add_masks(node: Node, *parts: Operand | None) -> Operand | None:
    present = [part for part in parts if part is not None]
    return node.add(Add, *present) if len(present) == 2 else next(iter(present), None)


def _integer_addend(node: Node, mask: Operand, like: Operand, far: float) -> Operand:
    """Return an addend for scores from an integer mask [N, T] or [N, S, T], 0 for hidden keys."""
    axes = {2: (1, 2), 3: (1,)}[rank_of(mask)]
    zero = np.array(0, mask.type.element_type.dtype)
    return _mask_addend(node, node.add(Equal, node.add(Unsqueeze, mask, axes), zero), like, far)


@imports("com.microsoft.MultiHeadAttention")
def multi_head_attention(node: Node) -> list[Operand]:
    """Import attention of projected queries, keys and values."""
    if node.optional(1) is None or node.optional(2) is None or rank_of(node[0]) != 3:
        raise UnsupportedError("queries, keys and values in one tensor cannot be expressed")
    for index, name in ((8, "past_sequence_length"), (9, "cache_indirection")):
        if node.optional(index) is not None:
            raise UnsupportedError(f"{name} cannot be expressed")
    only("number of outputs", sum(map(bool, node.outputs[3:])), 0)
    heads = node.integer("num_heads")
    _check_heads(heads)
    query, key, value = _add_bias(node, node.optional(3))
    keys, values = _add_past(node, key, value, [node.optional(6), node.optional(7)], heads)
    causality = _causality(node, query, key)
    far, scale = node.real("mask_filter_value", _FAR), node.real("scale", 0.0)
    padding = node.optional(4)
    hidden = None
    if padding is not None:
        if rank_of(padding) not in (2, 3):
            raise UnsupportedError("key_padding_mask of lengths cannot be expressed")
        hidden = _integer_addend(node, padding, query, far)
    mask = _add_masks(node, hidden, node.optional(5))
    output = node.add(
        *(Attention, query, keys, values, mask, causality, scale),
        num_heads=heads,
    )
    return [output, keys, values]


def _add_bias(node: Node, bias: Operand | None) -> list[Operand]:
    """Return query, key and value plus their parts of the bias."""
    parts = [node[index] for index in range(3)]
    if bias is None:
        return parts
    if any(rank_of(part) != 3 for part in parts):
        raise UnsupportedError("a bias of keys with heads apart cannot be expressed")
    sizes = [_static(_size(part, 2), "the size of the heads") for part in parts]
    shifts = node.add_all(Split, bias, 0, sizes)
    return [node.add(Add, part, shift) for part, shift in zip(parts, shifts, strict=True)]


def _static(size: Dim, what: str) -> int:
    if not isinstance(size, int):
        raise UnsupportedError(f"{what} is computed when the model runs")
    return size


def _causality(node: Node, query: Operand, key: Operand) -> Causality:
    """Return the causality; with several keys per query, the last query attends to all keys."""
    if not node.flag("unidirectional", False):
        return Causality.NONE
    if _length(query) not in (1, _length(key)):
        raise UnsupportedError("unidirectional, with different numbers of keys and queries")
    return Causality.TO_LAST


@imports("com.microsoft.Attention")
def contributed_attention(node: Node) -> list[Operand]:
    """Import attention with the projection of the input to queries, keys and values."""
    only("do_rotary", node.flag("do_rotary", False), False)
    only("past_present_share_buffer", node.flag("past_present_share_buffer", False), False)
    node.ignore("rotary_embedding_dim")
    if node.optional(6) is not None:
        raise UnsupportedError("past_sequence_length cannot be expressed")
    projected = _project(node, node.optional_integers("qkv_hidden_sizes"))
    return add_self_attention(node, projected, node.optional(3), node.optional(4), node.optional(5))


def add_self_attention(
    node: Node,
    projected: Sequence[Operand],
    index: Operand | None,
    past: Operand | None,
    addend: Operand | None = None,
) -> list[Operand]:
    """Add the attention that the attributes of ONNX Runtime's Attention describe, and its state.

    Args:
        node: the operator.
        projected: queries, keys and values.
        index: the input `mask_index`.
        past: keys and values of earlier runs.
        addend: an addend for the scores.
    """
    heads = node.integer("num_heads")
    _check_heads(heads)
    query, key, value = projected
    before: list[Operand | None] = [None, None]
    if past is not None:
        before = [node.add(Gather, past, np.array(index), 0) for index in range(2)]
    keys, values = _add_past(node, key, value, before, heads)
    causality = _causality(node, query, key)
    far, scale = node.real("mask_filter_value", _FAR), node.real("scale", 0.0)
    hidden = None if index is None else _index_addend(node, index, query, keys, far)
    mask = _add_masks(node, hidden, addend)
    output = node.add(
        *(Attention, query, keys, values, mask, causality, scale),
        num_heads=heads,
    )
    results = [output]
    if len(node.outputs) > 1 and node.outputs[1]:
        parts = [node.add(Unsqueeze, each, (0,)) for each in (keys, values)]
        results.append(node.add(Concat, parts, 0))
    return results


def _project(node: Node, sizes: Sequence[int] | None) -> Sequence[Operand]:
    """Project the input to queries, keys and values."""
    weights, bias = node[1], node.optional(2)
    sizes = sizes or projection_sizes(weights)
    # Engines recognize three products with separate additions; constant weights are split once.
    parts = node.add_all(Split, weights, 1, tuple(sizes))
    products = [node.add(MatMul, node[0], part) for part in parts]
    if bias is None:
        return products
    shifts = node.add_all(Split, bias, 0, tuple(sizes))
    return [node.add(Add, product, shift) for product, shift in zip(products, shifts, strict=True)]


def projection_sizes(weights: Operand) -> tuple[int, int, int]:
    """Return the equal numbers of columns of the weights for queries, keys and values."""
    third, rest = divmod(_static(_size(weights, 1), "the size of the weights"), 3)
    if rest:
        raise ModelError("the weights do not make three tensors")
    return third, third, third


def _index_addend(node: Node, index: Operand, query: Operand, key: Operand, far: float) -> Operand:
    """Return an addend for scores from `mask_index`: an integer mask, or the lengths of entries."""
    if rank_of(index) in (2, 3):
        return _integer_addend(node, index, query, far)
    if rank_of(index) != 1:
        raise UnsupportedError("mask_index of four axes cannot be expressed")
    entries, count = _size(query, 0), _size(index, 0)
    if count == entries:
        positions = _positions(node, key)
        ends = node.add(Reshape, index, (-1, 1, 1, 1))
        return _mask_addend(node, node.add(LessEqual, ends, positions), query, far)
    raise UnsupportedError("mask_index of ends and starts cannot be expressed")


@imports("Attention")
def attention(node: Node) -> list[Operand]:
    """Import ONNX's Attention; a query that attends to no key has output 0."""
    only("number of outputs", sum(map(bool, node.outputs[3:])), 0)
    node.ignore("qk_matmul_output_mode")
    dtype = node[0].type.element_type
    precision = node.integer("softmax_precision", 0)  # the softmax may be more precise
    if precision not in (0, 1, 10, 16) and dtype is not ElementType.FLOAT64:
        raise UnsupportedError(f"softmax_precision {precision} cannot be expressed")
    heads, key_heads = node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0)
    query, key, value = (node[index] for index in range(3))
    if rank_of(query) == 3:
        _check_heads(heads)
    if value.type.element_type is not dtype:
        raise UnsupportedError("values of another type than queries cannot be expressed")
    keys, values = _add_past(node, key, value, [node.optional(4), node.optional(5)], key_heads)
    causal, counts = node.flag("is_causal"), node.optional(6)
    mask, causality = node.optional(3), Causality.NONE
    if mask is not None and _size(mask, -1) != _length(keys):
        raise UnsupportedError("a mask for fewer keys cannot be expressed")
    if causal and counts is None:
        causality = _standard_causality(node, query, key)
    if counts is not None:
        valid = _key_mask(node, counts, query, key, causal=causal)
        mask = valid if mask is None else _combine_masks(node, mask, valid)
    scale, softcap = node.real("scale", 0.0), node.real("softcap")
    output = node.add(
        *(Attention, query, keys, values, mask, causality, scale, softcap),
        num_heads=heads,
        key_heads=key_heads,
    )
    if mask is not None:
        output = _zero_unattended(node, output, mask, heads)
    return [output, keys, values]


def _standard_causality(node: Node, query: Operand, key: Operand) -> Causality:
    """Return the causality; with past keys, queries and new keys must have equal lengths."""
    if node.optional(4) is None:
        return Causality.FROM_FIRST
    if _length(query) != _length(key):
        raise UnsupportedError("is_causal with past keys, and other numbers of keys than queries")
    return Causality.TO_LAST


def _key_mask(
    node: Node, counts: Operand, query: Operand, key: Operand, *, causal: bool
) -> Operand:
    """Return a boolean mask of keys within each entry's length and, if causal, up to the query."""
    ends = node.add(Reshape, counts, (-1, 1, 1, 1))
    positions = node.add(Cast, _positions(node, key), ElementType.INT64)
    valid = node.add(Less, positions, ends)
    if not causal:
        return valid
    queries = node.add(Cast, _positions(node, query), ElementType.INT64)
    total = _dynamic_length(node, query)
    rows = node.add(Unsqueeze, node.add(Sub, queries, total), (1,))
    return node.add(And, valid, node.add(LessEqual, positions, node.add(Add, rows, ends)))


def _combine_masks(node: Node, mask: Operand, valid: Operand) -> Operand:
    if mask.type.element_type is ElementType.BOOL:
        return node.add(And, mask, valid)
    return node.add(Where, valid, mask, np.array(-np.inf, mask.type.element_type.dtype))


def _zero_unattended(node: Node, output: Operand, mask: Operand, heads: int) -> Operand:
    """Set the output to 0 for queries whose keys are all masked."""
    if mask.value is not None and np.all(np.any(mask.value > -np.inf, -1)):
        return output
    dtype = output.type.element_type
    is_bool = mask.type.element_type is ElementType.BOOL
    weights = node.add(Cast, mask, dtype) if is_bool else mask
    least = np.array(0 if is_bool else -np.inf, dtype.dtype)
    unattended = node.add(LessEqual, node.add(ReduceMax, weights, (-1,), True), least)
    split = _split_heads(node, output, heads)
    zeroed = node.add(Where, unattended, np.array(0, dtype.dtype), split)
    if rank_of(output) == 4:
        return zeroed
    return node.add(Reshape, node.add(Transpose, zeroed, _HEADS_LAST), (0, 0, -1))


@imports("RotaryEmbedding")
def rotary_embedding(node: Node) -> Operand:
    return _rotate(node, node[1], node[2], node.optional(3))


@imports("com.microsoft.RotaryEmbedding")
def contributed_rotary_embedding(node: Node) -> Operand:
    """Import ONNX Runtime's RotaryEmbedding; a single position is that of the first element."""
    only("is_packed_batching", node.flag("is_packed_batching", False), False)
    only("scale", node.real("scale", 1.0), 1.0)
    positions = node[1]
    if rank_of(positions) == 1:
        offsets = node.add(Cast, _positions(node, node[0]), ElementType.INT64)
        positions = node.add(Unsqueeze, node.add(Add, offsets, positions), (0,))
    return _rotate(node, node[2], node[3], positions)


def _rotate(node: Node, cos: Operand, sin: Operand, positions: Operand | None) -> Operand:
    """Add a rotary embedding; a nonzero `rotary_embedding_dim` must match the tables."""
    heads = node.integer("num_heads", 0)
    rotated, interleaved = node.integer("rotary_embedding_dim", 0), node.flag("interleaved", False)
    half = _static(_size(cos, -1), "the size of the tables")
    if rotated not in (0, 2 * half):
        raise ModelError(f"rotary_embedding_dim is {rotated}, but the tables are for {2 * half}")
    if rank_of(node[0]) == 3 and not heads:
        heads = _static(_size(node[0], 2), "the size of the heads") // (2 * half)
    flat = heads if rank_of(node[0]) == 3 else 0
    return node.add(RotaryEmbedding, node[0], cos, sin, positions, flat, interleaved)


@imports(f"{DOMAIN}.QAttention")
def quantized_attention(node: Node) -> list[Operand]:
    """Import QAttention: integer projections to queries, keys and values, then attention on reals.

    The inputs are A, weights, bias, the scales of A and weights, the mask, the zero points of A and
    weights, and keys and values of earlier runs.
    """
    only("do_rotary", node.flag("do_rotary", False), False)
    only("past_present_share_buffer", node.flag("past_present_share_buffer", False), False)
    weights, bias, zero_point = node[1], node.optional(2), node.optional(6)
    sizes = projection_sizes(weights)
    scales, zeros = (
        _split_columns(node, node[4], sizes),
        _split_columns(node, node.optional(7), sizes),
    )
    biases = _split_columns(node, bias, sizes)
    projected = []
    parts = node.add_all(Split, weights, 1, sizes)
    for part, scale, zero, shift in zip(parts, scales, zeros, biases, strict=True):
        product = add_integer_product(node, node[0], part, zero_point, zero)
        assert scale is not None, "the scale is required"
        projected.append(scale_product(node, product, node[3], scale, shift))
    return add_self_attention(node, projected, node.optional(5), node.optional(8))


def _split_columns(
    node: Node, numbers: Operand | None, sizes: Sequence[int]
) -> Sequence[Operand | None]:
    """Split per-column numbers into parts; a single number serves all parts."""
    if numbers is None or rank_of(numbers) == 0 or numbers.type.static_shape == (1,):
        return [numbers] * len(sizes)
    return node.add_all(Split, numbers, 0, tuple(sizes))
