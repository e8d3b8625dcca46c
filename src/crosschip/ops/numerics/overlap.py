"""Ranking of boxes, their overlaps (intersection over union), and non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from crosschip.ir import Array

OverlapsWith: TypeAlias = Callable[[int, Sequence[int]], Array]
"""Returns the overlaps of a box with others, all by index."""


def rank_scores(
    scores: Array, threshold: float, enough: Callable[[Array, Array], Array] = np.greater
) -> Array:
    """Return the indices of scores above a threshold in descending order (stable)."""
    indices = np.flatnonzero(enough(scores, np.array(threshold, scores.dtype)))
    return indices[np.argsort(-scores[indices], kind="stable")]


def overlaps(boxes: Array, pixel: float) -> Array:
    """Return the intersection over union of all pairs of [M, 4] boxes.

    Args:
        boxes: two corners of each box, the smaller one first.
        pixel: added to the difference of coordinates to get a side's length.
    """
    side_offset = np.array(pixel, boxes.dtype)
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = np.where((high < low).any(axis=2), 0, (high - low + side_offset).prod(axis=2))
    sides = boxes[:, 2:] - boxes[:, :2]
    areas = np.where((sides < 0).any(axis=1), 0, (sides + side_offset).prod(axis=1))
    either = areas[:, None] + areas - common
    return np.where((common > 0) & (either > 0), common / either, 0)


def overlaps_of_any(boxes: Array, pixel: float) -> Array:
    """Like `overlaps`, also for boxes with swapped corners, as Paddle computes it.

    Such a box has area 0. Its intersection with another box is a product of two sides, one or both
    of which are negative.
    """
    side_offset = np.array(pixel, boxes.dtype)
    low, high = boxes[:, :2], boxes[:, 2:]
    are_apart = ((low[:, None] > high) | (high[:, None] < low)).any(axis=2)
    sides = np.minimum(high[:, None], high) - np.maximum(low[:, None], low) + side_offset
    common = np.where(are_apart, 0, sides.prod(axis=2))
    is_inside_out = (high < low).any(axis=1)
    areas = np.where(is_inside_out, 0, (high - low + side_offset).prod(axis=1))
    either = areas[:, None] + areas - common
    with np.errstate(all="ignore"):
        return np.where(are_apart, 0, common / either)


def row_lookup(matrix: Array) -> OverlapsWith:
    """Return a function that looks up overlaps in the matrix of all overlaps."""
    return lambda box, others: matrix[box, others]


def non_max_suppression(
    order: Array,
    overlaps_with: OverlapsWith,
    threshold: float,
    eta: float,
    most: int | None = None,
) -> list[int]:
    """Select boxes in order, skipping those that overlap a box selected before.

    Args:
        order: the indices of the boxes, in order.
        overlaps_with: returns the overlaps of a box with others.
        threshold: the largest overlap that is allowed.
        eta: if less than 1, the threshold is multiplied by it after each selection while above 0.5.
        most: the largest number of selected boxes; `None` for all.
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
