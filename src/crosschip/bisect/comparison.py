"""Comparison of a device's result with the trusted one, allowing for rounding.

A device may round in other places and sum in another order than the reference. So a result may
differ by as much as it changes when inputs and weights are perturbed by a few roundings; the
reference computes it from perturbed ones to measure that. Differences of a few roundings of the
largest element, and of the operation's intermediates (`crosschip.accuracy.rounding`), are accepted
without this measurement.
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
"""The perturbation of inputs and weights, in roundings."""

_FLOOR = 32
"""The accepted difference, in roundings of the largest element."""
_MARGIN = 4
"""The factor by which a difference may exceed the effect of perturbation."""
Perturbed = Callable[[], Sequence[Any]]
"""Computes the result from perturbed inputs and weights, in several trials."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a result and the expected one.

    Attributes:
        error: the error of the result, in `crosschip.accuracy.error.UNIT`; infinite if an element
            is not finite, or the shape or type differs.
        largest: the absolute difference of the worst element; infinite as above.
        explained: the part of `largest` that rounding explains.
        detail: the problem in words; empty if there is none.
    """

    error: float
    largest: float
    explained: float
    detail: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the difference exceeds the limit."""
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
    """Compare a result with the expected one.

    Args:
        actual: the result.
        expected: the expected result.
        type_: the type of the result.
        perturbed: computes the result from perturbed operands; called only if needed.
        depth: the number of operations that compute the result.
        precision: the arithmetic for float32.
        tolerance: the allowed difference relative to the largest element; if `None`, it follows
            from rounding.
        rounding: the absolute difference of an element that rounding explains.
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
    """Return whether an output is of integers and computed from identical operands."""
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
        distance: the absolute differences; infinite if one element is not finite and the other
            differs.
        size: the absolute values of `expected`; 0 if not finite.
        is_ordinary: which elements are not far larger than others.
        scale: the largest absolute value of ordinary elements.
        error: the error of `actual`, in `crosschip.accuracy.error.UNIT`.
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
        expected64, actual64 = expected.astype(np.float64), actual.astype(np.float64)
        same = (actual == expected) | (np.isnan(expected64) & np.isnan(actual64))
        finite = np.isfinite(expected64) & np.isfinite(actual64)
        with np.errstate(invalid="ignore", over="ignore"):
            difference = np.abs(actual64 - expected64)
            distance = np.where(same, 0.0, np.where(finite, difference, math.inf))
        size = np.where(np.isfinite(expected64), np.abs(expected64), 0.0)
        usual = is_ordinary(size)
        scale = float(size[usual].max(initial=0.0))
        error = relative_error(actual, expected, rounding)
        return cls(actual, expected, np.asarray(distance), size, usual, scale, error)

    def movement(self, perturbed: Sequence[Any]) -> Array:
        """Return the effect of perturbation per element; for ordinary ones the largest effect."""
        movement = np.zeros(self.distance.shape)
        for other in perturbed:
            if not isinstance(other, np.ndarray) or other.shape != self.expected.shape:
                continue
            with np.errstate(invalid="ignore", over="ignore"):
                distance = np.abs(other.astype(np.float64) - self.expected.astype(np.float64))
            movement = np.maximum(movement, np.where(np.isfinite(distance), distance, 0.0))
        return np.where(self.is_ordinary, movement[self.is_ordinary].max(initial=0.0), movement)

    def judge(self, limits: Array) -> Difference:
        """Return the difference, given the limit of each element."""
        wrong = self.distance > limits
        unit = np.where(self.is_ordinary, self.scale or 1.0, self.size)
        relative = self.distance / unit
        of_wrong = np.where(wrong, relative, -1.0) if wrong.any() else relative
        index = np.unravel_index(int(np.argmax(of_wrong)), wrong.shape)
        detail = self._sentence(wrong, index) if wrong.any() else ""
        return Difference(self.error, float(self.distance[index]), float(limits[index]), detail)

    def _sentence(self, wrong: Array, index: tuple[Any, ...]) -> str:
        count, total = int(np.count_nonzero(wrong)), wrong.size
        where = f" at {list(map(int, index))}" if index else ""
        many = (
            f"{count} of {total} elements are wrong, most the one" if total > 1 else "the element"
        )
        values = f"{self.actual[index]} instead of {self.expected[index]}"
        return f"{many}{where}: {values}{_common_index(wrong)}"


def _common_index(wrong: Array) -> str:
    """Return the index of an axis that all wrong elements share, in words; empty if none."""
    for axis in range(wrong.ndim):
        if wrong.shape[axis] < 2:
            continue
        others = tuple(other for other in range(wrong.ndim) if other != axis)
        indices = np.flatnonzero(wrong.any(axis=others))
        if len(indices) == 1 and np.count_nonzero(wrong) > 1:
            return f"; all of them are at {int(indices[0])} of axis {axis}"
    return ""


def loses_finite_elements(actual: Any, expected: Any) -> bool:
    """Return whether an element is NaN or infinite where the expected one is finite."""
    if not isinstance(actual, np.ndarray) or not isinstance(expected, np.ndarray):
        return False
    if actual.shape != expected.shape or ElementType.of(actual.dtype) not in FLOATS:
        return False
    return bool((~np.isfinite(actual) & np.isfinite(expected)).any())
