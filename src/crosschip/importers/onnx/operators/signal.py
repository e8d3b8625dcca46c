"""Fourier transforms, as products with matrices of their waves."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, axis_from_front, bounded, imports
from crosschip.ir import Array, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Mod, Mul
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.creation import Range
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.slicing import Slice


@imports("DFT")
def dft(node: Node) -> Operand:
    """The axis is an attribute before opset 20, then an input."""
    rank = len(_shape(node[0]))
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    length = node.optional(1)
    count = None if length is None else _known(length, "the length")

    def along(axis: int) -> Operand:
        return _transformed(node, node[0], axis, count, inverse=inverse, onesided=onesided)

    given = node.optional(2) if node.opset >= 20 else None
    if given is not None and given.value is None:
        if onesided or count is not None:
            raise UnsupportedError("the axis, which changes size, is computed when the model runs")
        place = node.add(
            Mod, node.add(Reshape, given, ()), np.array(rank, given.type.element_type.dtype)
        )
        return _chosen(node, place, [along(axis) for axis in range(rank - 1)])
    if node.opset < 20:
        asked = node.integer("axis")
    else:
        asked = -2 if given is None else _known(given, "the axis")
    axis = axis_from_front(asked, rank)
    if axis == rank - 1:
        raise ModelError("the last axis holds real and imaginary parts, and is not transformed")
    return along(axis)


def _chosen(node: Node, place: Operand, choices: list[Operand]) -> Operand:
    """One of several tensors of one shape, by its number."""
    result = choices[-1]
    for number, choice in enumerate(choices[:-1]):
        number_like = np.array(number, place.type.element_type.dtype)
        result = node.add(Where, node.add(Equal, place, number_like), choice, result)
    return result


@imports("STFT")
def stft(node: Node) -> Operand:
    """Transforms of frames of the signal, [batch, length, 1 or 2], that begin `step` apart."""
    onesided = node.flag("onesided")
    signal, step, window, given = node[0], node[1], node.optional(2), node.optional(3)
    length = _size(signal, 1)
    if given is not None:
        size = _known(given, "the frame length")
    elif window is not None:
        size = _size(window, 0)
    else:
        raise ModelError("neither a window nor a frame length is given")
    one = node.add(Reshape, step, ())
    last = np.array(length - size + 1, step.type.element_type.dtype)
    starts = node.add(Range, np.zeros((), last.dtype), last, one)
    places = node.add(Add, node.add(Unsqueeze, starts, (1,)), np.arange(size, dtype=last.dtype))
    frames = node.add(Gather, signal, places, 1)
    if window is not None:
        frames = node.add(Mul, frames, node.add(Reshape, window, (-1, 1)))
    return _transformed(node, frames, 2, size, onesided=onesided)


def _transformed(
    node: Node,
    signal: Operand,
    axis: int,
    length: int | None,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Operand:
    """The discrete Fourier transform along an axis, parts of numbers along the last one."""
    rank = len(_shape(signal))
    size, parts = _size(signal, axis), _size(signal, rank - 1)
    if parts not in (1, 2):
        raise ModelError(f"numbers have {parts} parts, but must have 1 or 2")
    if length is None:
        length = 2 * (size - 1) if inverse and onesided else size
    used = min(size, length // 2 + 1 if inverse and onesided else length)
    if used < size:
        signal = node.add(Slice, signal, axes=(axis,), starts=(0,), ends=(used,))
    bounded(used * length)
    matrix = _waves(used, length, inverse=inverse, onesided=onesided)[:, :parts]
    count, made = matrix.shape[2:]
    matrix = matrix.reshape(used * parts, count * made).astype(signal.type.element_type.dtype)
    others = [other for other in range(rank - 1) if other != axis]
    order = (*others, axis, rank - 1)
    rows = node.add(Reshape, node.add(Transpose, signal, order), (*(0,) * len(others), -1))
    product = node.add(MatMul, rows, matrix)
    result = node.add(Reshape, product, (*(0,) * len(others), count, made))
    return node.add(Transpose, result, tuple(order.index(place) for place in range(rank)))


def _waves(used: int, length: int, *, inverse: bool, onesided: bool) -> Array:
    """The contribution of each part of each number in to each part of each number out.

    The axes are: number in, part in, number out, part out.
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
        # Each number but the first, and the middle one, stands for its conjugate too.
        alone = (np.arange(used) == 0) | (2 * np.arange(used) == length)
        waves = waves[..., :1] * np.where(alone, 1, 2).reshape(-1, 1, 1, 1)
    return waves


def _shape(operand: Operand) -> tuple[object, ...]:
    if operand.type.shape is None:
        raise UnsupportedError(f"the number of axes of {operand.name!r} must be known")
    return operand.type.shape


def _size(operand: Operand, axis: int) -> int:
    size = _shape(operand)[axis]
    if not isinstance(size, int):
        raise UnsupportedError(f"the size of axis {axis} of {operand.name!r} must be known")
    return size


def _known(operand: Operand, what: str) -> int:
    if operand.value is None:
        raise UnsupportedError(f"{what} is computed when the model runs")
    return int(operand.value.item())
