"""Attention and rotary position embedding."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.indexing import within
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.standard.attention import Attention, Causality, RotaryEmbedding


@converts(Attention)
def attention(op: Attention) -> Kernel:
    causality, softcap, scale = op.causality, op.softcap, op.scale or None
    heads = [op.heads(slot) for slot in ("query", "key", "value")]

    def run(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        is_flat = query.ndim == 3
        query, key, value = (
            x if x.ndim == 4 else x.unflatten(-1, (count, -1)).transpose(1, 2)
            for x, count in zip((query, key, value), heads, strict=True)
        )
        mask = _with_causality(mask, query, key, causality)
        if softcap:
            output = _bounded_attention(query, key, value, mask, scale, softcap)
        else:
            grouped = query.shape[1] != key.shape[1]
            output = functional.scaled_dot_product_attention(
                query, key, value, mask, scale=scale, enable_gqa=grouped
            )
        return output.transpose(1, 2).flatten(2) if is_flat else output

    return run


def _with_causality(
    mask: Tensor | None, query: Tensor, key: Tensor, causality: Causality
) -> Tensor | None:
    """Return the mask of scores, without the keys that causality excludes."""
    if causality is Causality.NONE:
        return mask
    rows, columns = query.shape[2], key.shape[2]
    offset = columns - rows if causality is Causality.TO_LAST else 0
    visible = torch.ones((rows, columns), dtype=torch.bool, device=query.device).tril(offset)
    if mask is None:
        return visible
    return mask & visible if mask.dtype is torch.bool else torch.where(visible, mask, -math.inf)


def _bounded_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float | None,
    softcap: float,
) -> Tensor:
    """Compute attention whose scores are bounded by a hyperbolic tangent."""
    shared = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(shared, 1) for x in (key, value))
    scores = query @ key.mT * (scale or query.shape[3] ** -0.5)
    scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        is_choice = mask.dtype is torch.bool
        scores = torch.where(mask, scores, -math.inf) if is_choice else scores + mask
    return torch.softmax(scores, -1) @ value


@converts(RotaryEmbedding)
def rotary_embedding(op: RotaryEmbedding) -> Kernel:
    heads, interleaved = op.num_heads, op.interleaved

    def run(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None) -> Tensor:
        rows = x.unflatten(2, (heads, -1)) if x.ndim == 3 else x
        if positions is not None:
            places = within(positions, cos.shape[0])
            cos, sin = cos[places], sin[places]
        cos, sin = (table.unsqueeze(2 if x.ndim == 3 else 1) for table in (cos, sin))
        return rotated(rows, cos, sin, interleaved).reshape(x.shape)

    return run


def rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate pairs of elements along the last axis; elements without an angle are unchanged."""
    half = cos.shape[-1]
    turning, rest = x[..., : 2 * half], x[..., 2 * half :]
    pairs = turning.unflatten(-1, (half, 2) if interleaved else (2, half))
    real, imaginary = pairs.unbind(-1 if interleaved else -2)
    parts = real * cos - imaginary * sin, real * sin + imaginary * cos
    turned = torch.stack(parts, -1 if interleaved else -2).flatten(-2)
    return torch.cat([turned, rest], -1)
