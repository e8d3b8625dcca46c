"""Fourier transforms as matrix products, and complex numbers as pairs along the last axis."""

from __future__ import annotations

import numpy as np

from crosschip.importers.facts import rank_of, size_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Array, ModelError, Operand
from crosschip.ir.budget import spend
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard.arithmetic import Add, Sub
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Stack
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.reduction import ReduceL2
from crosschip.ops.standard.slicing import Slice


def complex_part(node: Node, part: int) -> Operand:
    """Return the real (0) or imaginary (1) parts of the first input."""
    return node.add(Gather, node[0], np.array(part, np.int32), axis=rank_of(node[0]) - 1)


@imports("REAL", "IMAG")
def part(node: Node) -> Operand:
    return complex_part(node, 0 if node.type == "REAL" else 1)


@imports("COMPLEX_ABS")
def complex_abs(node: Node) -> Operand:
    return node.add(ReduceL2, node[0], axes=(rank_of(node[0]) - 1,), keepdim=False)


@imports("RFFT2D")
def rfft_2d(node: Node) -> Operand:
    """Import the transform of real images, cropped or padded to a size, without its mirror image.

    Raises:
        ModelError: the size is not that of an image.
    """
    lengths = [int(length) for length in node.value(1, "the length of the transform").ravel()]
    if len(lengths) != 2 or min(lengths) < 1:
        raise ModelError(f"the length of the transform is {lengths}, but must be two sizes")
    height, width = lengths
    rank = rank_of(node[0])
    image = _resized(node, _resized(node, node[0], rank - 2, height), rank - 1, width)
    cosine, sine = _waves(width, width // 2 + 1)
    real, imaginary = node.add(MatMul, image, cosine), node.add(MatMul, image, -sine)
    if height > 1:
        cosine, sine = _waves(height, height)
        real, imaginary = (
            node.add(Add, node.add(MatMul, cosine, real), node.add(MatMul, sine, imaginary)),
            node.add(Sub, node.add(MatMul, cosine, imaginary), node.add(MatMul, sine, real)),
        )
    return node.add(Stack, parts=[real, imaginary], axis=rank)


def _resized(node: Node, image: Operand, axis: int, length: int) -> Operand:
    """Return an image with the first elements of an axis, or zeros after them."""
    axis = normalize_axis(axis, rank_of(image))
    size = size_of(image, axis)
    if size > length:
        return node.add(Slice, image, axes=(axis,), starts=(0,), ends=(length,))
    if size == length:
        return image
    pads = [0] * (2 * rank_of(image))
    pads[2 * axis + 1] = length - size
    return node.add(Pad, image, tuple(pads))


def _waves(length: int, count: int) -> tuple[Array, Array]:
    """Return the cosines and sines of `2 * pi * row * column / length`."""
    spend(bytes=8 * length * count)
    angles = 2 * np.pi / length * (np.outer(np.arange(length), np.arange(count)) % length)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
