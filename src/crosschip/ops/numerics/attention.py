"""Attention and the rotation of queries and keys, in NumPy."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array


def heads_apart(rows: Array, heads: int) -> Array:
    """[N, S, H * D] as [N, H, S, D]."""
    entries, places, width = rows.shape
    return rows.reshape(entries, places, heads, width // heads).swapaxes(1, 2)


def heads_together(heads_apart: Array) -> Array:
    """[N, H, S, D] as [N, S, H * D]."""
    entries, heads, places, size = heads_apart.shape
    return heads_apart.swapaxes(1, 2).reshape(entries, places, heads * size)


def attend(
    query: Array, key: Array, value: Array, mask: Array | None, scale: float, softcap: float
) -> Array:
    """`softmax(query @ transposed key * scale + mask) @ value`, for heads of their own axis.

    Args:
        query: [N, H, S, D].
        key: [N, K, T, D], where K divides H.
        value: [N, K, T, V].
        mask: what is added to scores; of booleans, false where a key is not attended to.
        scale: what scores are multiplied by; 0 for `1 / sqrt(D)`.
        softcap: what scores stay within; 0 for no such bound.
    """
    shared = query.shape[1] // key.shape[1]
    key, value = (np.repeat(each, shared, 1) for each in (key, value))
    scores = query @ key.swapaxes(-1, -2) * (scale or query.shape[3] ** -0.5)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ value)


def rotate(x: Array, cos: Array, sin: Array, *, interleaved: bool) -> Array:
    """Pairs of numbers along the last axis, turned by angles; numbers without one stay.

    Args:
        x: the numbers.
        cos: cosines, which broadcast to `x`, of a last axis at most half as long.
        sin: sines, alike.
        interleaved: whether pairs stand side by side, and not half a head apart.
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
