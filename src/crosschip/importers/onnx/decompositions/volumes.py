"""Sampling of images with three spatial axes (volumes) at the coordinates in a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from crosschip.importers.facts import static_shape_of
from crosschip.importers.onnx.node import Node
from crosschip.ir import ElementType, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Clip, Min, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather, GatherElements
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.unary import Floor, Neg, Round

Neighbour = tuple[Operand, Operand | None, Operand | None]
"""A neighbouring pixel on one axis: index, weight (`None` for 1), mask of pixels in the image."""


def sample_volumes(node: Node, mode: str, padding: str, *, align_corners: bool) -> Operand:
    """Add GridSample of [N, C, D, H, W] with a grid [N, D_out, H_out, W_out, 3] of x, y and z."""
    if mode not in ("linear", "bilinear", "nearest"):
        raise UnsupportedError(f"mode {mode} of volumes cannot be expressed")
    batch, channels, *sizes = static_shape_of(node[0])
    target = static_shape_of(node[1])[1:-1]
    neighbours = []
    for axis, size in enumerate(sizes):
        column = node.add(Gather, node[1], np.array(2 - axis), -1)
        flat = node.add(Reshape, column, (batch, math.prod(target)))
        position = _to_pixels(node, flat, size, align_corners)
        position = _pad_positions(node, position, size, padding, align_corners)
        neighbours.append(_neighbours(node, position, size, mode, zeros=padding == "zeros"))
    source = node.add(Reshape, node[0], (batch, channels, math.prod(sizes)))
    total: Operand | None = None
    for corner in itertools.product(*neighbours):
        part = _contribution(node, source, corner, sizes)
        total = part if total is None else node.add(Add, total, part)
    assert total is not None, "there is at least one corner"
    return node.add(Reshape, total, (batch, channels, *target))


def _to_pixels(node: Node, coordinate: Operand, size: int, align_corners: bool) -> Operand:
    """Convert coordinates from -1 to 1 to pixels; 0 is the centre of the first pixel."""
    shifted = node.add(Add, coordinate, 1.0)
    if align_corners:
        return node.add(Mul, shifted, (size - 1) / 2)
    return node.add(Sub, node.add(Mul, shifted, size / 2), 0.5)


def _pad_positions(
    node: Node, position: Operand, size: int, padding: str, align_corners: bool
) -> Operand:
    """Map positions outside the image to its border or to their reflection."""
    if padding == "zeros":
        return position
    if padding == "reflection":
        low = 0.0 if align_corners else -0.5
        span = 2 * (size - 1) if align_corners else 2 * size
        if span == 0:
            return node.add(Mul, position, 0.0)
        folded = node.add(Mod, node.add(Sub, position, low), float(span))
        mirrored = node.add(Sub, node.add(Neg, folded), -float(span))
        position = node.add(Add, node.add(Min, folded, mirrored), low)
    return node.add(Clip, position, 0.0, float(size - 1))


def _neighbours(
    node: Node, position: Operand, size: int, mode: str, *, zeros: bool
) -> list[Neighbour]:
    """Return the nearest pixel of each position, or the pixels before and after it."""
    if mode == "nearest":
        pixels: list[tuple[Operand, Operand | None]] = [(node.add(Round, position), None)]
    else:
        low = node.add(Floor, position)
        part = node.add(Sub, position, low)
        rest = node.add(Sub, node.add(Neg, part), -1.0)
        pixels = [(low, rest), (node.add(Add, low, 1.0), part)]
    neighbours: list[Neighbour] = []
    for pixel, weight in pixels:
        clipped = node.add(Clip, pixel, 0.0, float(size - 1))
        inside = node.add(Equal, clipped, pixel) if zeros else None
        neighbours.append((node.add(Cast, clipped, ElementType.INT64), weight, inside))
    return neighbours


def _contribution(
    node: Node, source: Operand, corner: Sequence[Neighbour], sizes: Sequence[int]
) -> Operand:
    """Return the weighted pixels at one corner of the cells around the positions."""
    index, factor = corner[0][0], None
    for size, (pixel, _, _) in zip(sizes[1:], corner[1:], strict=True):
        index = node.add(Add, node.add(Mul, index, np.array(size)), pixel)
    batch, channels, _ = static_shape_of(source)
    count = static_shape_of(index)[1]
    spread = node.add(Expand, node.add(Unsqueeze, index, (1,)), (batch, channels, count))
    values = node.add(GatherElements, source, spread, 2)
    for _, weight, inside in corner:
        if inside is not None:
            zero = np.zeros((), source.type.element_type.dtype)
            values = node.add(Where, node.add(Unsqueeze, inside, (1,)), values, zero)
        if weight is not None:
            factor = weight if factor is None else node.add(Mul, factor, weight)
    return values if factor is None else node.add(Mul, values, node.add(Unsqueeze, factor, (1,)))
