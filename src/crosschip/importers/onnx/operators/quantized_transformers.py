"""Transformers' operators of ONNX Runtime on bytes that stand for reals."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.facts import rank_of
from crosschip.importers.onnx.node import Node, imports, only
from crosschip.importers.onnx.operators.attention import attention_to_itself, thirds
from crosschip.importers.onnx.operators.integers import product_of_integers, scaled
from crosschip.importers.onnx.operators.normalization import counted_words, embedded
from crosschip.ir import Operand
from crosschip.ops.standard.joining import Split
from crosschip.ops.standard.normalization import LayerNormalization

_TO_SCALE, _TO_ZERO_POINT = 6, 11
"""So much behind an input are its scale and its zero point."""

_OPSET = 13
"""A version of ONNX's operators in which bytes stand for reals."""


@imports(f"{DOMAIN}.QAttention")
def quantized_attention(node: Node) -> list[Operand]:
    """Attention on reals, whose queries, keys and values are products of bytes.

    The inputs are A, the weights, a bias, the scales of both, the mask, the zero points of both,
    and keys and values of the runs before.
    """
    only("do_rotary", node.flag("do_rotary", False), False)
    only("past_present_share_buffer", node.flag("past_present_share_buffer", False), False)
    weights, bias, zero_point = node[1], node.optional(2), node.optional(6)
    sizes = thirds(weights)
    scales, zeros = _by_columns(node, node[4], sizes), _by_columns(node, node.optional(7), sizes)
    biases = _by_columns(node, bias, sizes)
    projected = []
    parts = node.add_all(Split, weights, 1, sizes)
    for part, scale, zero, shift in zip(parts, scales, zeros, biases, strict=True):
        product = product_of_integers(node, node[0], part, zero_point, zero)
        assert scale is not None, "the scale is required"
        projected.append(scaled(node, product, node[3], scale, shift))
    return attention_to_itself(node, projected, node.optional(5), node.optional(8))


def _by_columns(
    node: Node, numbers: Operand | None, sizes: Sequence[int]
) -> Sequence[Operand | None]:
    """The numbers of the columns of each part; one number is that of all."""
    if numbers is None or rank_of(numbers) == 0 or numbers.type.static_shape == (1,):
        return [numbers] * len(sizes)
    return node.add_all(Split, numbers, 0, tuple(sizes))


@imports(f"{DOMAIN}.QEmbedLayerNormalization")
def quantized_embed_layer_normalization(node: Node) -> list[Operand | None]:
    """The normalized sum of a word's embeddings, and how many words count.

    The inputs are words, segments, the embeddings of words, places and segments, scale and bias,
    the mask; then the scales of these five, and their zero points.
    """

    def real(operand: Operand, index: int) -> Operand:
        numbers = [node[index + _TO_SCALE], node[index + _TO_ZERO_POINT]]
        return node.on_reals("DequantizeLinear", [operand, *numbers], opset=_OPSET)

    epsilon = node.real("epsilon", 1e-12)
    total = embedded(node, None, real)
    scale, bias = (real(node[index], index) for index in (5, 6))
    normal = node.add(LayerNormalization, total, scale, bias, -1, epsilon)
    return [normal, counted_words(node)]
