"""Discrete Fourier transforms as matrix products."""

from __future__ import annotations

import numpy as np

from crosschip.importers.facts import rank_of, size_of
from crosschip.importers.onnx.node import Node, bounded
from crosschip.ir import Array, ModelError, Operand
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.slicing import Slice


def fourier_transform(
    node: Node,
    signal: Operand,
    axis: int,
    length: int | None,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Operand:
    """Add a Fourier transform along `axis`; the last axis holds real and imaginary parts."""
    rank = rank_of(signal)
    size, parts = size_of(signal, axis), size_of(signal, rank - 1)
    if parts not in (1, 2):
        raise ModelError(f"numbers have {parts} parts, but must have 1 or 2")
    if length is None:
        length = 2 * (size - 1) if inverse and onesided else size
    used = min(size, length // 2 + 1 if inverse and onesided else length)
    if used < size:
        signal = node.add(Slice, signal, axes=(axis,), starts=(0,), ends=(used,))
    bounded(used * length)
    matrix = _waves(used, length, inverse=inverse, onesided=onesided)[:, :parts]
    count, result_parts = matrix.shape[2:]
    matrix = matrix.reshape(used * parts, count * result_parts).astype(
        signal.type.element_type.dtype
    )
    others = [other for other in range(rank - 1) if other != axis]
    order = (*others, axis, rank - 1)
    rows = node.add(Reshape, node.add(Transpose, signal, order), (*(0,) * len(others), -1))
    product = node.add(MatMul, rows, matrix)
    result = node.add(Reshape, product, (*(0,) * len(others), count, result_parts))
    return node.add(Transpose, result, tuple(order.index(axis) for axis in range(rank)))


def _waves(used: int, length: int, *, inverse: bool, onesided: bool) -> Array:
    """Return the transform matrix.

    The axes are: input element, input part, output element, output part, where parts are real and
    imaginary.
    """
    real = inverse and onesided
    count = length // 2 + 1 if onesided and not inverse else length
    angles = 2 * np.pi / length * (np.outer(np.arange(used), np.arange(count)) % length)
    sign = 1 if inverse else -1
    cosine, sine = np.cos(angles), sign * np.sin(angles)
    waves = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], 1)
    if inverse:
        waves /= length
    if real:
        # Each element but the first and the middle one also represents its conjugate.
        is_self_conjugate = (np.arange(used) == 0) | (2 * np.arange(used) == length)
        waves = waves[..., :1] * np.where(is_self_conjugate, 1, 2).reshape(-1, 1, 1, 1)
    return waves
