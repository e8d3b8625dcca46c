"""The difference between two results of the same computation, and how much of it rounding explains.

A device may round otherwise than the reference, in any order of sums, so a result may be off by as
much as it moves when everything that it is made of is off by a few roundings. That is tried: the
reference computes it once more from inputs and weights that are each moved by that much. What is
off by no more than a floor is never looked at twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosschip.conformance.tolerance import computed_in, epsilon
from crosschip.hal import Precision
from crosschip.ir import Array, ElementType, TensorType
from crosschip.ir.types import FLOATS

ROUNDINGS = 4
"""By how many roundings inputs and weights are moved."""

_FLOOR = 32
"""The roundings of the largest element that nobody promises to do better than."""
_MARGIN = 4
"""How much more than in a trial a result may move."""
_OUTLIER, _LARGE = 1e3, 9e3
"""Elements so large, by small ones and at all, are masks' and measured each by itself."""

Moved = Callable[[], Sequence[Any]]
"""Computes a result again, from what is off by a few roundings, in each of some trials."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a result and what it should be.

    Attributes:
        error: the largest one, as a part of the largest element; infinite if a number is none, or
            the result is of another shape or type.
        allowed: what rounding explains of it, in the same measure.
        detail: what is wrong, in words; empty if nothing is.
    """

    error: float
    allowed: float
    detail: str = ""

    @property
    def is_wrong(self) -> bool:
        """Tell whether it is more than may be."""
        return bool(self.detail)


def step_of(type_: TensorType, precision: Precision = Precision.FLOAT32) -> float:
    """The relative error of one rounding in the arithmetic of a tensor; 0 if it is not of reals."""
    element_type = computed_in(type_, precision).element_type
    return epsilon(element_type) if element_type in FLOATS else 0.0


def difference(
    made: Any,
    wanted: Any,
    type_: TensorType,
    moved: Moved,
    *,
    depth: int = 1,
    precision: Precision = Precision.FLOAT32,
    tolerance: float | None = None,
) -> Difference:
    """Compare a result with what it should be.

    Args:
        made: the result.
        wanted: what it should be.
        type_: its type.
        moved: computes `wanted` again from what is off; asked only in doubt.
        depth: through how many operations it has come.
        precision: the arithmetic for float32.
        tolerance: what is allowed, as a part of the largest element, if rounding is not to say it.
    """
    if not isinstance(wanted, np.ndarray) or wanted.dtype.hasobject:
        return _exactly(made, wanted)
    if not isinstance(made, np.ndarray) or made.shape != wanted.shape or made.dtype != wanted.dtype:
        return Difference(math.inf, 0.0, f"is {_brief(made)} instead of {_brief(wanted)}")
    if not wanted.size:
        return Difference(0.0, 0.0)
    measure = _Measure.of(made, wanted)
    if tolerance is not None:
        return measure.judged(np.full(measure.apart.shape, tolerance * measure.scale))
    steps = 1.0 if type_.quantization else 0.0
    floor = _FLOOR * step_of(type_, precision)
    limits = steps + floor * np.where(measure.ordinary, measure.scale, measure.size)
    quick = measure.judged(limits)
    if not quick.is_wrong or math.isinf(quick.error) or _is_exact(type_, depth):
        return quick
    return measure.judged(limits + _MARGIN * measure.movement(moved()))


def _is_exact(type_: TensorType, depth: int) -> bool:
    """Tell whether an output is no real, and made of what is no other on the device."""
    return depth == 1 and type_.element_type not in FLOATS


def _exactly(made: Any, wanted: Any) -> Difference:
    try:
        same = (
            bool(np.array_equal(made, wanted))
            if isinstance(wanted, np.ndarray)
            else (made == wanted)
        )
    except ValueError:  # arrays in lists, which are compared element by element
        same = repr(made) == repr(wanted)
    return Difference(0.0, 0.0) if same else Difference(math.inf, 0.0, "is another value")


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return type(value).__name__


@dataclass(frozen=True, slots=True)
class _Measure:
    """Two arrays, element by element.

    Attributes:
        made: the one.
        wanted: the other.
        apart: how far their elements are from each other; infinite where one of the two is no
            number, or infinite, and the other is not the same.
        size: that of each element of `wanted`; 0 where it is not finite.
        ordinary: which elements are not far larger than others.
        scale: the size of the largest ordinary element.
    """

    made: Array
    wanted: Array
    apart: Array
    size: Array
    ordinary: Array
    scale: float

    @classmethod
    def of(cls, made: Array, wanted: Array) -> _Measure:
        wide, other = wanted.astype(np.float64), made.astype(np.float64)
        same = (made == wanted) | (np.isnan(wide) & np.isnan(other))
        finite = np.isfinite(wide) & np.isfinite(other)
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.where(same, 0.0, np.where(finite, np.abs(other - wide), math.inf))
        size = np.where(np.isfinite(wide), np.abs(wide), 0.0)
        ordinary = _ordinary(size)
        scale = float(size[ordinary].max(initial=0.0))
        return cls(made, wanted, np.asarray(apart), size, ordinary, scale)

    def movement(self, moved: Sequence[Any]) -> Array:
        """How far elements move; all ordinary ones as far as the one that moves most."""
        found = np.zeros(self.apart.shape)
        for other in moved:
            if not isinstance(other, np.ndarray) or other.shape != self.wanted.shape:
                continue
            with np.errstate(invalid="ignore", over="ignore"):
                apart = np.abs(other.astype(np.float64) - self.wanted.astype(np.float64))
            found = np.maximum(found, np.where(np.isfinite(apart), apart, 0.0))
        return np.where(self.ordinary, found[self.ordinary].max(initial=0.0), found)

    def judged(self, limits: Array) -> Difference:
        """The difference, if elements may be this far from each other."""
        wrong = self.apart > limits
        unit = np.where(self.ordinary, self.scale or 1.0, self.size)
        relative = self.apart / unit
        place = np.unravel_index(int(np.argmax(np.where(wrong, relative, -1.0))), wrong.shape)
        if not wrong.any():
            place = np.unravel_index(int(np.argmax(relative)), wrong.shape)
        error, allowed = float(relative[place]), float(limits[place] / unit[place])
        if not wrong.any():
            return Difference(error, allowed)
        return Difference(error, allowed, self._told(wrong, place))

    def _told(self, wrong: Array, place: tuple[Any, ...]) -> str:
        count, total = int(np.count_nonzero(wrong)), wrong.size
        where = f" at {[int(index) for index in place]}" if place else ""
        many = (
            f"{count} of {total} elements are wrong, most the one" if total > 1 else "the element"
        )
        return f"{many}{where}: {self.made[place]} instead of {self.wanted[place]}{_where(wrong)}"


def _where(wrong: Array) -> str:
    """The one place along an axis that all wrong elements are at, in words; empty if none."""
    for axis in range(wrong.ndim):
        if wrong.shape[axis] < 2:
            continue
        others = tuple(other for other in range(wrong.ndim) if other != axis)
        places = np.flatnonzero(wrong.any(axis=others))
        if len(places) == 1 and np.count_nonzero(wrong) > 1:
            return f"; all of them are at {int(places[0])} of axis {axis}"
    return ""


def _ordinary(size: Array) -> Array:
    """The elements that are not far larger than the small ones."""
    some = size[size > 0]
    if not some.size:
        return np.ones(size.shape, bool)
    return np.asarray(size <= max(_LARGE, _OUTLIER * float(np.quantile(some, 0.1))))


def is_nan(made: Any, wanted: Any) -> bool:
    """Tell whether elements are no numbers that should be some."""
    if not isinstance(made, np.ndarray) or not isinstance(wanted, np.ndarray):
        return False
    if made.shape != wanted.shape or ElementType.of(made.dtype) not in FLOATS:
        return False
    return bool((~np.isfinite(made) & np.isfinite(wanted)).any())
