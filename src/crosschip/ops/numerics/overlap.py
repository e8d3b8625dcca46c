"""Overlaps (intersection over union) of boxes and polygons, and non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
    order: Array, overlaps_with: OverlapsWith, threshold: float, eta: float, most: int | None = None
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


def outline_area(points: Array) -> float:
    """Return the area inside the outline of [V, 2] points, by the shoelace formula."""
    x, y = points.T
    return abs(float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())) / 2


def crosses_itself(points: Array) -> bool:
    """Return whether two sides of a polygon of [V, 2] points cross each other."""
    return _Sides.of(points).cross_themselves


def common_area(first: Array, second: Array) -> float:
    """Return the area of the intersection of two polygons of [V, 2] points, by the even-odd rule.

    A hole in the intersection, which only self-intersecting polygons have, counts as area, as in
    Paddle's `PolyOverlapArea`, which adds the areas of all outlines.

    The plane is divided into horizontal strips at all vertices and crossings, so that no sides
    cross inside a strip and each strip is a row of trapezoids.
    """
    sides = _Sides.of(first, second)
    levels, event_of = np.unique(sides.events[:, 0], return_inverse=True)
    middle, height = (levels[1:] + levels[:-1]) / 2, np.diff(levels)
    is_across = (sides.low < middle[:, None]) & (middle[:, None] < sides.high)
    x = np.where(is_across, sides.x + sides.slope * (middle[:, None] - sides.y), np.inf)
    order = np.argsort(x, axis=1)
    is_passed = np.take_along_axis(is_across, order, 1)
    is_inside = np.ones(order.shape, bool)
    for polygon in (0, 1):
        count = np.cumsum(is_passed & (sides.polygon[order] == polygon), axis=1)
        is_inside &= count % 2 == 1
    # A side bounds the intersection if the area to its right begins (-1) or ends (1) there.
    change = np.diff(is_inside.astype(np.int8), axis=1, prepend=0)
    bound = np.zeros(x.shape, np.int8)
    np.put_along_axis(bound, order, -change, 1)
    areas = np.where(bound != 0, x, 0) * bound * height[:, None]
    if not sides.cross_themselves:
        return float(areas.sum())
    events: list[list[tuple[int, int]]] = [[] for _ in levels]
    for level, (_, one, other) in zip(event_of, sides.events, strict=True):
        events[level].append((int(one), int(other)))
    outlines = _outlines(bound != 0, events)
    if outlines is None:
        return float(areas.sum())
    return float(np.abs(np.bincount(outlines[bound != 0], areas[bound != 0])).sum())


@dataclass(frozen=True)
class _Sides:
    """Sides of two polygons except horizontal ones, and events along the y axis.

    A side is a point (`x`, `y`) and a `slope` dx/dy, from `low` to `high`, of `polygon` 0 or 1. An
    event [y, side, side] is a vertex that joins two sides, or a crossing of two sides.
    """

    x: Array
    y: Array
    slope: Array
    low: Array
    high: Array
    polygon: Array
    events: Array
    cross_themselves: bool

    @classmethod
    def of(cls, *polygons: Array) -> _Sides:
        begin = np.concatenate(polygons).astype(np.float64)
        end = np.concatenate([np.roll(points, -1, axis=0) for points in polygons])
        polygon = np.repeat([0, 1], [len(points) for points in polygons])
        before = np.concatenate(
            [np.roll(np.flatnonzero(polygon == p), 1) for p in range(len(polygons))]
        )
        vertices = np.stack([begin[:, 1], before, np.arange(len(begin))], axis=1)
        (x, y), (x1, y1) = begin.T, end.T
        with np.errstate(all="ignore"):
            slope = (x1 - x) / (y1 - y)
            base = x - slope * y
            height = (base[None] - base[:, None]) / (slope[:, None] - slope[None])
        low, high = np.minimum(y, y1), np.maximum(y, y1)
        is_crossing = (np.maximum(low[:, None], low) < height) & (
            height < np.minimum(high[:, None], high)
        )
        one, other = np.nonzero(np.triu(is_crossing))
        are_of_one = polygon[one] == polygon[other]
        crossings = np.stack([height[one, other], one, other], axis=1)
        events = np.concatenate([vertices, crossings])
        return cls(x, y, slope, low, high, polygon, events, bool(are_of_one.any()))


def _outlines(
    is_bound: Array, events: Sequence[Sequence[tuple[int, int]]]
) -> NDArray[np.intp] | None:
    """Number the outlines of an area.

    Where four bounds meet in a point, the two below it are parents and so are the two above it, as
    in Paddle's polygon clipper.

    Args:
        is_bound: for each strip and side, whether the side bounds the area.
        events: for each level (the lower end of a strip), the pairs of sides that meet there.

    Returns:
        The outline number of each bound; `None` if more than two sides meet in a point, or one of
        them is horizontal.
    """
    parents: list[int] = []  # a number that an outline has as well
    nothing = np.zeros((1, is_bound.shape[1]), bool)
    numbers = np.full((len(is_bound) + 1, is_bound.shape[1]), -1)
    (before,) = nothing
    for strip, (bounds, pairs) in enumerate(
        zip(np.concatenate([is_bound, nothing]), events, strict=True)
    ):
        numbers[strip] = numbers[strip - 1]
        is_settled = before & bounds
        for pair in pairs:
            lower, upper = ([side for side in pair if of[side]] for of in (before, bounds))
            if len(lower) == len(upper) == 1:
                numbers[strip, upper] = numbers[strip - 1, lower]
            elif len(lower) == 1 or len(upper) == 1:
                return None
            if len(lower) == 2:
                first, second = (_root(parents, numbers[strip - 1, side]) for side in lower)
                parents[first] = second
            if len(upper) == 2:
                numbers[strip, upper] = len(parents)
                parents.append(len(parents))
            is_settled[list(pair)] = True
        if ((before != bounds) & ~is_settled).any():
            return None
        before = bounds
    roots = np.array([_root(parents, number) for number in range(len(parents))], np.intp)
    return np.append(roots, -1)[numbers[:-1]]


def _root(parents: Sequence[int], number: int) -> int:
    while parents[number] != number:
        number = parents[number]
    return number


class PolygonOverlaps:
    """Intersection over union of pairs of [M, 2 V] polygons, computed on demand and cached.

    It is 0 if one of the two areas is 0.
    """

    def __init__(self, polygons: Array) -> None:
        self._dtype = polygons.dtype
        shape = (len(polygons), polygons.shape[1] // 2, 2)
        self._corners = polygons.astype(np.float64).reshape(shape)
        self._low, self._high = self._corners.min(axis=1), self._corners.max(axis=1)
        self._cache: dict[tuple[int, int], float] = {}

    def __call__(self, polygon: int, others: Sequence[int]) -> Array:
        """Return the overlaps of a polygon with others."""
        return np.array([self._overlap(polygon, other) for other in others], self._dtype)

    def _overlap(self, one: int, other: int) -> float:
        key = (min(one, other), max(one, other))
        if key not in self._cache:
            self._cache[key] = self._compute(*key)
        return self._cache[key]

    def _compute(self, one: int, other: int) -> float:
        low, high = self._low, self._high
        if not ((low[one] < high[other]) & (low[other] < high[one])).all():
            return 0.0
        first, second = self._corners[one], self._corners[other]
        areas, common = (outline_area(first), outline_area(second)), common_area(first, second)
        return common / (sum(areas) - common) if all(areas) and common else 0.0
