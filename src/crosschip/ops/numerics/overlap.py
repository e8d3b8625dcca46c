"""Ranking of boxes, their overlaps, and the choice of those that do not overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from crosschip.ir import Array

OverlapsWith: TypeAlias = Callable[[int, Sequence[int]], Array]
"""Returns the overlaps of a box with others, all by index."""


def ranked(
    scores: Array, threshold: float, enough: Callable[[Array, Array], Array] = np.greater
) -> Array:
    """The indices of scores beyond a threshold, the highest first, equal ones in order."""
    indices = np.flatnonzero(enough(scores, np.array(threshold, scores.dtype)))
    return indices[np.argsort(-scores[indices], kind="stable")]


def overlaps(boxes: Array, pixel: float) -> Array:
    """The common area of each two of [M, 4] boxes over the area of either.

    Args:
        boxes: two corners of each, the lesser one first.
        pixel: how much more than the difference of its coordinates a side is.
    """
    one = np.array(pixel, boxes.dtype)
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = np.where((high < low).any(axis=2), 0, (high - low + one).prod(axis=2))
    sides = boxes[:, 2:] - boxes[:, :2]
    areas = np.where((sides < 0).any(axis=1), 0, (sides + one).prod(axis=1))
    either = areas[:, None] + areas - common
    return np.where((common > 0) & (either > 0), common / either, 0)


def overlaps_of_any(boxes: Array, pixel: float) -> Array:
    """The same, also of boxes turned inside out, as Paddle has it.

    Such a box has no area; what it has in common with another one is the product of two sides of
    which one or both are negative.
    """
    one = np.array(pixel, boxes.dtype)
    low, high = boxes[:, :2], boxes[:, 2:]
    are_apart = ((low[:, None] > high) | (high[:, None] < low)).any(axis=2)
    sides = np.minimum(high[:, None], high) - np.maximum(low[:, None], low) + one
    common = np.where(are_apart, 0, sides.prod(axis=2))
    is_inside_out = (high < low).any(axis=1)
    areas = np.where(is_inside_out, 0, (high - low + one).prod(axis=1))
    either = areas[:, None] + areas - common
    with np.errstate(all="ignore"):
        return np.where(are_apart, 0, common / either)


def row_lookup(matrix: Array) -> OverlapsWith:
    """Return the function that reads overlaps of a box with others from the matrix of all."""
    return lambda box, others: matrix[box, others]


def suppressed(
    order: Array,
    overlaps_with: OverlapsWith,
    threshold: float,
    eta: float,
    most: int | None = None,
) -> list[int]:
    """Return the first of the boxes, in their order, that overlap none returned before them.

    Args:
        order: the indices of the boxes.
        overlaps_with: returns the overlaps of a box with others.
        threshold: the greatest overlap that is none.
        eta: what multiplies the threshold, while that is above 0.5, if less than 1.
        most: how many boxes to return at most; all if not given.
    """
    selected: list[int] = []
    for box in order:
        if most is not None and len(selected) >= most:
            break
        if not (overlaps_with(int(box), selected) > threshold).any():
            selected.append(int(box))
            if eta < 1 and threshold > 0.5:
                threshold *= eta
    return selected
