"""Conversion of elements to another type."""

from __future__ import annotations

from enum import IntEnum

import ml_dtypes
import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ir.types import NARROW_FLOATS


class PowerRounding(IntEnum):
    """Rounding of a number between two powers of 2."""

    UP = 0
    DOWN = 1
    NEAREST = 2
    """The larger power if the number is halfway."""


def cast(
    array: Array,
    element_type: ElementType,
    saturate: bool = True,
    rounding: PowerRounding = PowerRounding.UP,
) -> Array:
    """Convert elements to another type as specified by the operator CAST."""
    if element_type is ElementType.FLOAT8E8M0:
        return _powers_of_two(array, saturate, rounding)
    if saturate and element_type in NARROW_FLOATS:
        limits = ml_dtypes.finfo(element_type.dtype)  # type: ignore[no-untyped-call]  # has no types
        array = np.clip(_reals(array), float(limits.min), float(limits.max))
    return _native(array).astype(element_type.dtype)


def _native(array: Array) -> Array:
    """Return equal values in a built-in NumPy type, which casts to all types, unlike ml_dtypes."""
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.int32 if "int" in array.dtype.name else np.float32)


def _powers_of_two(array: Array, saturate: bool, rounding: PowerRounding) -> Array:
    """Convert to E8M0, which stores an exponent plus 127; 255 is NaN."""
    reals = _reals(array).astype(np.float64)
    mantissa, exponent = np.frexp(reals)
    # The mantissa is in [0.5, 1), so the next lower power of 2 has the exponent minus 1.
    exponent = exponent - 1 + _rounds_up(mantissa, rounding)
    exponent = np.where(reals == 0, -128, np.where(np.isinf(reals), 128, exponent))
    if saturate:
        exponent = np.clip(exponent, -127, 127)
    valid = (reals >= 0) & (exponent >= -127) & (exponent <= 127)
    bits = np.where(valid, exponent + 127, 255).astype(np.uint8)
    return bits.view(ElementType.FLOAT8E8M0.dtype)


def _rounds_up(mantissa: Array, rounding: PowerRounding) -> Array:
    if rounding is PowerRounding.UP:
        return mantissa > 0.5
    return mantissa >= (0.75 if rounding is PowerRounding.NEAREST else 1)


def _reals(array: Array) -> Array:
    is_real = array.dtype in (ElementType.FLOAT32.dtype, ElementType.FLOAT64.dtype)
    return array if is_real else array.astype(np.float64)
