"""The difference between two results of the same computation, and how much of it rounding explains.

A device may round otherwise than the reference, in any order of sums, so a result may be off by as
much as it moves when everything that it is made of is off by a few roundings. That is tried: the
reference computes it once more from inputs and weights that are each moved by that much. What is
off by no more than a few roundings of its largest element, and of the numbers that its operation
goes through (`crosschip.accuracy.rounding`), is never looked at twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosschip.accuracy.epsilon import epsilon_of
from crosschip.accuracy.error import equal, relative_error
from crosschip.accuracy.rounding import is_ordinary
from crosschip.hal import Precision
from crosschip.ir import Array, ElementType, TensorType
from crosschip.ir.types import FLOATS

ROUNDINGS = 4
"""By how many roundings inputs and weights are moved."""

_FLOOR = 32
"""The roundings of the largest element that nobody promises to do better than."""
_MARGIN = 4
"""How much more than in a trial a result may move."""
Perturbed = Callable[[], Sequence[Any]]
"""Computes a result again, from what is off by a few roundings, in each of some trials."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a result and what it should be.

    Attributes:
        error: of the result as a whole, in `crosschip.accuracy.error.UNIT`; infinite if a number is
            none, or the result is of another shape or type.
        largest: the difference of the element that is furthest beyond what it may be off, in the
            result's own unit; infinite as above.
        explained: what rounding explains of that, in the same unit.
        detail: what is wrong, in words; empty if nothing is.
    """

    error: float
    largest: float
    explained: float
    detail: str = ""

    @property
    def is_wrong(self) -> bool:
        """Tell whether it is more than may be."""
        return bool(self.detail)


def difference(
    actual: Any,
    expected: Any,
    type_: TensorType,
    perturbed: Perturbed,
    *,
    depth: int = 1,
    precision: Precision = Precision.FLOAT32,
    tolerance: float | None = None,
    rounding: float = 0.0,
) -> Difference:
    """Compare a result with what it should be.

    Args:
        actual: the result.
        expected: what it should be.
        type_: its type.
        moved: computes `expected` again from what is off; asked only in doubt.
        depth: through how many operations it has come.
        precision: the arithmetic for float32.
        tolerance: what is allowed, as a part of the largest element, if rounding is not to say it.
        rounding: what rounding explains at any element, whatever its size.
    """
    if not isinstance(expected, np.ndarray) or expected.dtype.hasobject:
        return _compare_exactly(actual, expected)
    if (
        not isinstance(actual, np.ndarray)
        or actual.shape != expected.shape
        or actual.dtype != expected.dtype
    ):
        return Difference(
            math.inf,
            math.inf,
            0.0,
            f"is {_describe_value(actual)} instead of {_describe_value(expected)}",
        )
    if not expected.size:
        return Difference(0.0, 0.0, 0.0)
    measure = _Measure.of(actual, expected, rounding)
    if tolerance is not None:
        return measure.judge(np.full(measure.distance.shape, tolerance * measure.scale))
    steps = 1.0 if type_.quantization else 0.0
    floor = _FLOOR * epsilon_of(type_, precision)
    sizes = np.where(measure.is_ordinary, measure.scale, measure.size)
    limits = steps + np.maximum(rounding, floor * sizes)
    quick = measure.judge(limits)
    if not quick.is_wrong or math.isinf(quick.error) or _is_exact(type_, depth):
        return quick
    return measure.judge(limits + _MARGIN * measure.movement(perturbed()))


def _is_exact(type_: TensorType, depth: int) -> bool:
    """Tell whether an output is no real, and made of what is no other on the device."""
    return depth == 1 and type_.element_type not in FLOATS


def _compare_exactly(actual: Any, expected: Any) -> Difference:
    if equal(actual, expected):
        return Difference(0.0, 0.0, 0.0)
    return Difference(math.inf, math.inf, 0.0, "is another value")


def _describe_value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return type(value).__name__


@dataclass(frozen=True, slots=True)
class _Measure:
    """Two arrays, element by element.

    Attributes:
        actual: the device's result.
        expected: the trusted result.
        distance: how far their elements are from each other; infinite where one of the two is no
            number, or infinite, and the other is not the same.
        size: that of each element of `wanted`; 0 where it is not finite.
        ordinary: which elements are not far larger than others.
        scale: the size of the largest ordinary element.
        error: of the one as a whole, in `crosschip.accuracy.error.UNIT`.
    """

    actual: Array
    expected: Array
    distance: Array
    size: Array
    is_ordinary: Array
    scale: float
    error: float

    @classmethod
    def of(cls, actual: Array, expected: Array, rounding: float) -> _Measure:
        wide, other = expected.astype(np.float64), actual.astype(np.float64)
        same = (actual == expected) | (np.isnan(wide) & np.isnan(other))
        finite = np.isfinite(wide) & np.isfinite(other)
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.where(same, 0.0, np.where(finite, np.abs(other - wide), math.inf))
        size = np.where(np.isfinite(wide), np.abs(wide), 0.0)
        usual = is_ordinary(size)
        scale = float(size[usual].max(initial=0.0))
        error = relative_error(actual, expected, rounding)
        return cls(actual, expected, np.asarray(distance), size, usual, scale, error)

    def movement(self, perturbed: Sequence[Any]) -> Array:
        """How far elements move; all ordinary ones as far as the one that moves most."""
        movement = np.zeros(self.distance.shape)
        for other in perturbed:
            if not isinstance(other, np.ndarray) or other.shape != self.expected.shape:
                continue
            with np.errstate(invalid="ignore", over="ignore"):
                distance = np.abs(other.astype(np.float64) - self.expected.astype(np.float64))
            movement = np.maximum(movement, np.where(np.isfinite(distance), distance, 0.0))
        return np.where(self.is_ordinary, movement[self.is_ordinary].max(initial=0.0), movement)

    def judge(self, limits: Array) -> Difference:
        """The difference, if elements may be this far from each other."""
        wrong = self.distance > limits
        unit = np.where(self.is_ordinary, self.scale or 1.0, self.size)
        relative = self.distance / unit
        of_wrong = np.where(wrong, relative, -1.0) if wrong.any() else relative
        index = np.unravel_index(int(np.argmax(of_wrong)), wrong.shape)
        detail = self._sentence(wrong, index) if wrong.any() else ""
        return Difference(self.error, float(self.distance[index]), float(limits[index]), detail)

    def _sentence(self, wrong: Array, index: tuple[Any, ...]) -> str:
        count, total = int(np.count_nonzero(wrong)), wrong.size
        where = f" at {[int(index) for index in index]}" if index else ""
        many = (
            f"{count} of {total} elements are wrong, most the one" if total > 1 else "the element"
        )
        return f"{many}{where}: {self.actual[index]} instead of {self.expected[index]}{_common_index(wrong)}"


def _common_index(wrong: Array) -> str:
    """The one place along an axis that all wrong elements are at, in words; empty if none."""
    for axis in range(wrong.ndim):
        if wrong.shape[axis] < 2:
            continue
        others = tuple(other for other in range(wrong.ndim) if other != axis)
        places = np.flatnonzero(wrong.any(axis=others))
        if len(places) == 1 and np.count_nonzero(wrong) > 1:
            return f"; all of them are at {int(places[0])} of axis {axis}"
    return ""


def is_nan(actual: Any, expected: Any) -> bool:
    """Tell whether elements are no numbers that should be some."""
    if not isinstance(actual, np.ndarray) or not isinstance(expected, np.ndarray):
        return False
    if actual.shape != expected.shape or ElementType.of(actual.dtype) not in FLOATS:
        return False
    return bool((~np.isfinite(actual) & np.isfinite(expected)).any())
