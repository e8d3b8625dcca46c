"""Attention and rotary embedding in NumPy."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array


def split_heads(rows: Array, heads: int) -> Array:
    """Reshape [N, S, H * D] to [N, H, S, D]."""
    entries, positions, width = rows.shape
    return rows.reshape(entries, positions, heads, width // heads).swapaxes(1, 2)


def merge_heads(array: Array) -> Array:
    """Reshape [N, H, S, D] to [N, S, H * D]."""
    entries, heads, positions, size = array.shape
    return array.swapaxes(1, 2).reshape(entries, positions, heads * size)


def attend(
    query: Array, key: Array, value: Array, mask: Array | None, scale: float, softcap: float
) -> Array:
    """Compute `softmax(query @ transpose(key) * scale + mask) @ value` for each head.

    Args:
        query: [N, H, S, D].
        key: [N, K, T, D], where K divides H.
        value: [N, K, T, V].
        mask: added to the scores; a boolean mask is false where a key is not attended to.
        scale: the factor of the scores; 0 for `1 / sqrt(D)`.
        softcap: the bound of the scores' absolute values; 0 for no bound.
    """
    shared = query.shape[1] // key.shape[1]
    key, value = (np.repeat(heads, shared, 1) for heads in (key, value))
    scores = query @ key.swapaxes(-1, -2) * (scale or query.shape[3] ** -0.5)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ value)


def rotate(x: Array, cos: Array, sin: Array, *, interleaved: bool) -> Array:
    """Rotate pairs of elements along the last axis; elements without an angle are unchanged.

    Args:
        x: the elements.
        cos: the cosines of the angles; broadcast to `x`, except that the last axis has one element
            per pair.
        sin: the sines, in the same shape.
        interleaved: whether a pair is adjacent; otherwise its elements are `cos.shape[-1]` apart.
    """
    half = cos.shape[-1]
    output = x.copy()
    first, second = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
        if interleaved
        else (slice(0, half), slice(half, 2 * half))
    )
    real, imaginary = x[..., first], x[..., second]
    output[..., first] = real * cos - imaginary * sin
    output[..., second] = real * sin + imaginary * cos
    return output
