"""Decompositions of PyTorch's fused attention, which its modules call where gradients are disabled.

PyTorch's exporter to ONNX does not translate these operators. Source: PyTorch 2.13,
`torch.nn.modules.activation` and `torch.nn.modules.transformer`, which compute the same without
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return functions that compute the operators by others."""
    import torch

    return {
        torch.ops.aten._native_multi_head_attention.default: _multi_head_attention,
        torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    }


def scaled_dot_product(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Return `scaled_dot_product_attention` with the layout in memory of its result on a processor.

    PyTorch's exporter takes another layout, which later views do not fit if sizes are dynamic.
    """
    import torch

    if enable_gqa:
        groups = query.size(1) // key.size(1)
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    factor = query.size(-1) ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-2, -1) * factor
    if is_causal:
        attn_mask = query.new_ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    attended = torch.ops.aten._safe_softmax.default(scores, -1) @ value
    return attended.transpose(-3, -2).contiguous().transpose(-3, -2)


def _multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    """Return the attention of tensors with the batch first, and its weights or an empty tensor."""
    import torch

    if mask is not None:
        raise NotImplementedError("fused attention with a mask")
    functional = torch.nn.functional
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    heads = [
        functional.linear(x, weight, bias)
        .unflatten(-1, (num_head, embed_dim // num_head))
        .transpose(1, 2)
        for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
    ]
    scores = heads[0] @ heads[1].transpose(-2, -1) * (embed_dim // num_head) ** -0.5
    probabilities = scores.softmax(-1)
    attended = (probabilities @ heads[2]).transpose(1, 2).flatten(-2)
    output = functional.linear(attended, proj_weight, proj_bias)
    if not need_weights:
        return output, query.new_zeros(0)
    return output, probabilities.mean(1) if average_attn_weights else probabilities


def _encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """Return the output of a `torch.nn.TransformerEncoderLayer`."""
    import torch

    functional = torch.nn.functional
    activate = functional.gelu if use_gelu else functional.relu

    def normalize(x: Any, weight: Any, bias: Any) -> Any:
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    def attend(x: Any) -> Any:
        projections = qkv_weight, qkv_bias, proj_weight, proj_bias
        return _multi_head_attention(x, x, x, embed_dim, num_heads, *projections, mask, False)[0]

    def feed(x: Any) -> Any:
        hidden = activate(functional.linear(x, ffn_weight_1, ffn_bias_1))
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(normalize(src, norm_weight_1, norm_bias_1))
        return x + feed(normalize(x, norm_weight_2, norm_bias_2))
    x = normalize(src + attend(src), norm_weight_1, norm_bias_1)
    return normalize(x + feed(x), norm_weight_2, norm_bias_2)
