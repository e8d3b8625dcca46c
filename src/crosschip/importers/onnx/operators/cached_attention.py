"""ONNX Runtime's attention with a cache of keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ops.standard.cached_attention import GroupQueryAttention
from crosschip.ops.standard.joining import Split

_OTHER_INPUTS = {
    9: "position_ids",
    10: "attention_bias",
    11: "head_sink",
    12: "k_scale",
    13: "v_scale",
    14: "q_norm_weight",
    15: "k_norm_weight",
    16: "query_seqlens",
}


@imports("com.microsoft.GroupQueryAttention")
def group_query_attention(node: Node) -> Sequence[Operand]:
    for index, name in _OTHER_INPUTS.items():
        if node.optional(index) is not None:
            raise UnsupportedError(f"{name} cannot be expressed")
    only("smooth_softmax", node.flag("smooth_softmax", False), False)
    only("qk_output", node.integer("qk_output", 0), 0)
    only("causal", node.flag("causal", True), True)
    only("sliding_window_cache", node.flag("sliding_window_cache", False), False)
    only("number of outputs", sum(map(bool, node.outputs[3:])), 0)
    node.ignore("k_quant_type", "v_quant_type", "kv_cache_bit_width")  # for quantized caches
    node.ignore("qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon")
    heads, key_heads = node.integer("num_heads"), node.integer("kv_num_heads")
    if min(heads, key_heads) < 1:
        raise ModelError(f"num_heads is {heads}, and kv_num_heads {key_heads}: both are positive")
    cos, sin = node.optional(7), node.optional(8)
    if not node.flag("do_rotary", False):
        cos = sin = None
    elif cos is None or sin is None:
        raise ModelError("do_rotary goes with cos_cache and sin_cache")
    window = node.integer("local_window_size", -1)
    query, key, value = _parts(node, heads, key_heads)
    return node.add_all(
        *(GroupQueryAttention, query, key, value, node[5], node[6]),
        *(node.optional(3), node.optional(4), cos, sin, heads, key_heads),
        scale=node.real("scale", 0.0),
        softcap=node.real("softcap", 0.0),
        window=max(0, window),
        interleaved=node.flag("rotary_interleaved", False),
    )


def _parts(node: Node, heads: int, key_heads: int) -> list[Operand]:
    """Return queries, keys and values, which may be packed in the first input."""
    key, value = node.optional(1), node.optional(2)
    if key is not None and value is not None:
        return [node[0], key, value]
    if key is not None or value is not None:
        raise ModelError("key and value must be given together")
    width = (node[0].type.shape or (None,))[-1]
    all_heads = heads + 2 * key_heads
    if not isinstance(width, int):
        raise UnsupportedError("the size of the heads is computed when the model runs")
    if width % all_heads:
        raise ModelError(f"{all_heads} heads do not divide the {width} numbers of the query")
    size = width // all_heads
    sizes = (heads * size, key_heads * size, key_heads * size)
    return list(node.add_all(Split, node[0], 2, sizes))
