"""Areas of polygons, and the area that two polygons have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosschip.ir import Array


def outline_area(points: Array) -> float:
    """Return the area inside the outline of [V, 2] points, by the shoelace formula."""
    x, y = points.T
    return abs(float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())) / 2


def crosses_itself(points: Array) -> bool:
    """Tell whether two sides of a polygon of [V, 2] points cross each other."""
    return _Sides.of(points).cross_themselves


def common_area(first: Array, second: Array) -> float:
    """Return the area inside both of two polygons of [V, 2] points, by the even-odd rule.

    A hole in the common area, which only sides that cross others of the same polygon make, counts
    as area, as it does in Paddle's `PolyOverlapArea`: that adds the areas of all outlines.

    The plane is cut into horizontal strips at each vertex and each crossing of two sides, so that
    the sides in a strip do not cross, and each strip is a row of trapezoids.
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
    # A side is a bound of the common area where that begins (-1) or ends (1) behind it.
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
    """The sides of two polygons that are not horizontal, and the events along the y axis.

    Each is a point (`x`, `y`) and a `slope` in x by y, from `low` to `high`, of a `polygon`, 0 or
    1. An event [height, side, side] is a vertex that joins two sides or a point where two cross.
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

    Where four bounds meet in a point, the two below it are joined and the two above it, as the
    polygon clipper in Paddle joins them.

    Args:
        is_bound: of each strip and side, whether it is a bound of the area.
        events: at each level (the lower end of a strip) the two sides that meet in a point.

    Returns:
        The number of the outline that each is in; `None` if more than two sides meet in a point,
        or one of them is horizontal.
    """
    joined: list[int] = []  # a number that an outline has as well
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
                first, second = (_root(joined, numbers[strip - 1, side]) for side in lower)
                joined[first] = second
            if len(upper) == 2:
                numbers[strip, upper] = len(joined)
                joined.append(len(joined))
            is_settled[list(pair)] = True
        if ((before != bounds) & ~is_settled).any():
            return None
        before = bounds
    roots = np.array([_root(joined, number) for number in range(len(joined))], np.intp)
    return np.append(roots, -1)[numbers[:-1]]


def _root(joined: Sequence[int], number: int) -> int:
    while joined[number] != number:
        number = joined[number]
    return number


class PolygonOverlaps:
    """The common area of each two of [M, 2 V] polygons over the area of either.

    It is 0 where one of these areas is 0. What is asked for is computed, and kept.
    """

    def __init__(self, polygons: Array) -> None:
        self._dtype = polygons.dtype
        shape = (len(polygons), polygons.shape[1] // 2, 2)
        self._corners = polygons.astype(np.float64).reshape(shape)
        self._low, self._high = self._corners.min(axis=1), self._corners.max(axis=1)
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, polygon: int, others: Sequence[int]) -> Array:
        """Return the overlaps of a polygon with others."""
        return np.array([self._overlap(polygon, other) for other in others], self._dtype)

    def _overlap(self, one: int, other: int) -> float:
        key = (min(one, other), max(one, other))
        if key not in self._known:
            self._known[key] = self._computed(*key)
        return self._known[key]

    def _computed(self, one: int, other: int) -> float:
        low, high = self._low, self._high
        if not ((low[one] < high[other]) & (low[other] < high[one])).all():
            return 0.0
        first, second = self._corners[one], self._corners[other]
        areas, common = (outline_area(first), outline_area(second)), common_area(first, second)
        return common / (sum(areas) - common) if all(areas) and common else 0.0
