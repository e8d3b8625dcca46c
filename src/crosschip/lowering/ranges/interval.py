"""Interval arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Dim, ElementType
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import terms_of
from crosschip.ir.types import BOOLEANS, INTEGERS

_GREATEST = float(np.finfo(np.float32).max)
_ROUNDING = 2.0**-20
"""The relative rounding error of an operation on float32, to its operands and result."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of numbers; intervals of integers are exact.

    Float ends include the rounding errors of float32.

    Attributes:
        low: the least number.
        high: the greatest number.
        special: whether infinities and NaN may occur too.
    """

    low: float
    high: float
    special: bool = False

    def __contains__(self, other: Interval) -> bool:
        return self.low <= other.low and other.high <= self.high

    def __str__(self) -> str:
        return f"from {self.low} to {self.high}"

    def __add__(self, other: Interval) -> Interval:
        return _interval_of([self.low + other.low, self.high + other.high], self, other)

    def __sub__(self, other: Interval) -> Interval:
        return _interval_of([self.low - other.high, self.high - other.low], self, other)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.special)

    def __mul__(self, other: Interval) -> Interval:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return _interval_of(ends, self, other)

    def __truediv__(self, other: Interval) -> Interval | None:
        """Return the quotients of reals; `None` where a divisor may be 0."""
        if other.low <= 0 <= other.high:
            return None
        ends = [a / b for a in (self.low, self.high) for b in (other.low, other.high)]
        return _interval_of(ends, self, other)

    def hull(self, *others: Interval) -> Interval:
        """Return the smallest interval that contains this one and others."""
        intervals = (self, *others)
        low, high = min(each.low for each in intervals), max(each.high for each in intervals)
        return Interval(low, high, any(each.special for each in intervals))

    def within(self, low: float, high: float) -> Interval:
        """Return the interval clipped to two bounds."""
        first, last = (min(max(end, low), high) for end in (self.low, self.high))
        return Interval(first, last, self.special)

    @staticmethod
    def hull_of(intervals: Iterable[Interval]) -> Interval:
        """Return the smallest interval that contains one or more intervals."""
        first, *others = intervals
        return first.hull(*others)

    @property
    def magnitude(self) -> Interval:
        """The interval of absolute values."""
        ends = abs(self.low), abs(self.high)
        least = 0 if self.low <= 0 <= self.high else min(ends)
        return Interval(least, max(ends), self.special)

    @property
    def to_integers(self) -> Interval:
        """The interval widened to integers, without infinities and NaN."""
        return Interval(math.floor(self.low), math.ceil(self.high))

    @property
    def rounded(self) -> Interval:
        """The interval after rounding to float32."""
        return _interval_of([float(self.low), float(self.high)], self)


TRUTH = Interval(0, 1)


def _interval_of(ends: Sequence[Any], *of: Interval) -> Interval:
    """Return the interval of results with these ends; large floats overflow to infinity."""
    low, high = min(ends), max(ends)
    special = any(each.special for each in of)
    if isinstance(low, int) and isinstance(high, int):
        return Interval(low, high, special)
    error = _ROUNDING * max(
        abs(end) for each in (Interval(low, high), *of) for end in (each.low, each.high)
    )
    low, high = low - error, high + error
    if low >= -_GREATEST and high <= _GREATEST:
        return Interval(low, high, special)
    return Interval(-_GREATEST, _GREATEST, True)


def of_type(element_type: ElementType) -> Interval | None:
    """Return the interval of an element type's values; `None` for floats and non-numeric types."""
    if element_type in BOOLEANS:
        return TRUTH
    if element_type not in INTEGERS:
        return None
    limits = np.iinfo(element_type.dtype)
    return Interval(int(limits.min), int(limits.max))


def of_elements(array: Array) -> Interval | None:
    """Return the interval of an array's elements; `None` if none of them is a finite number."""
    if array.dtype.kind in "biu":
        return Interval(int(array.min()), int(array.max())) if array.size else None
    numbers = array[np.isfinite(array)]
    if not numbers.size:
        return None
    return Interval(float(numbers.min()), float(numbers.max()), numbers.size < array.size)


def of_size(size: Dim, most: Mapping[str, int]) -> Interval:
    """Return the interval of an expression over dimensions.

    Args:
        size: the expression.
        most: the greatest value of each dimension, by name; the least is 0.
    """
    if isinstance(size, int):
        return Interval(size, size)
    total = Interval(0, 0)
    terms: Any = terms_of(size, lambda part: of_size(part, most))
    for coefficient, *factors in terms:
        product = Interval(coefficient, coefficient)
        for factor in factors:
            is_name = isinstance(factor, str)
            product = product * (
                Interval(0, most[factor]) if is_name else _FUNCTIONS[factor[0]](*factor[1:])
            )
        total = total + product
    return total


def _least(*parts: Interval) -> Interval:
    return Interval(min(part.low for part in parts), min(part.high for part in parts))


def _quotient(numerator: Interval, denominator: Interval) -> Interval:
    """Return quotients rounded down; division by 0 gives 0."""
    magnitude = int(numerator.magnitude.high)
    if numerator.low >= 0 and denominator.low >= 0:
        return Interval(0, magnitude)
    if denominator.low >= 1:
        return Interval(
            int(numerator.low) // int(denominator.low) if numerator.low < 0 else 0, magnitude
        )
    return Interval(-magnitude - 1, magnitude)


_FUNCTIONS: Mapping[str, Callable[..., Interval]] = {"//": _quotient, "min": _least}
"""The intervals of the functions in expressions over dimensions."""
