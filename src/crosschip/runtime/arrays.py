"""Conversion of callers' values to arrays: other memory layouts and libraries, plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.ir import Array, ElementType, InputError, TensorType
from crosschip.ir.interruption import raise_interruption
from crosschip.ir.types import OBJECTS

_TEXT_KINDS = "UT"
"""The kinds of NumPy's types for text: of fixed and of variable width."""

_NUMBER_KINDS = "biuf"
_FLOAT_KINDS = "fV"
"""Kinds of NumPy's types for floats; `V` is that of ml_dtypes' narrow ones."""


def as_array(value: object, type_: TensorType) -> Array:
    """Return an aligned C-contiguous array of an element type, without a copy if the value is one.

    Arrays keep their element type; NumPy types that are equivalent (`longlong`) or have another
    byte order become the usual one. Plain numbers and lists of them become the element type if it
    can represent them: integers exactly, other numbers rounded to the nearest.

    Args:
        value: a NumPy array or subclass; an object with `__array__` or `__dlpack__` in host memory;
            a number or nested lists of numbers; for `STRING`, texts; for `OBJECT`, a list, a
            dictionary, an array or `None`, which is returned unchanged.
        type_: the type of the model's input; its shape is not checked.

    Raises:
        InputError: the value cannot become an array of the element type.
    """
    element_type = type_.element_type
    if element_type is ElementType.OBJECT:
        checked: Array = _object(value)
        return checked
    array = value if isinstance(value, np.ndarray) else _array_by_protocol(value)
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InputError("has masked elements; pass array.filled(...) with a value for them")
    if element_type is ElementType.STRING:
        return _strings(np.asarray(array), type_)
    dtype = element_type.dtype
    if array.dtype.newbyteorder("=") == dtype:
        usual = np.require(np.asarray(array), array.dtype.newbyteorder("="), ("C", "A"))
        return usual.view(dtype)
    if _is_plain(value) and array.dtype.kind in _NUMBER_KINDS:
        return _convert_numbers(array, type_)
    raise InputError(
        f"is {array.dtype}, but the model takes {type_}; pass array.astype({str(element_type)!r})"
    )


def _array_by_protocol(value: Any) -> Array:
    """Return an array of an object by the first array protocol that works."""
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        return np.asarray(value)
    except Exception as error:  # any exception of foreign code is its failure
        raise_interruption(error)
        array = _narrow(value)
        if array is not None:
            return array
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"cannot be made an array: {text[0]} ({type(value).__name__}); pass one"
        ) from error


def _narrow(value: Any) -> Array | None:
    """Return an array of a tensor whose element type NumPy lacks."""
    from crosschip.runtime.dlpack import narrow_array

    try:
        return narrow_array(value) if hasattr(value, "__dlpack__") else None
    except Exception:  # the first exception, from NumPy's protocol, is the better message
        return None


def _is_plain(value: object) -> bool:
    """Return whether a value is a number or a list without an element type."""
    return isinstance(value, bool | int | float | list | tuple | range) and not isinstance(
        value, np.generic
    )


def _convert_numbers(numbers: Array, type_: TensorType) -> Array:
    """Convert plain numbers to an element type that can represent them."""
    dtype = type_.element_type.dtype
    with np.errstate(all="ignore"):
        converted = numbers.astype(dtype)
        if numbers.dtype.kind == "f" and dtype.kind in _FLOAT_KINDS:
            lost = np.isfinite(numbers) != np.isfinite(converted)
        else:
            back = converted.astype(numbers.dtype)
            lost = (back != numbers) | ((converted < 0) != (numbers < 0))
    if lost.any():
        raise InputError(
            f"holds {numbers[lost].flat[0]}, but the model takes {type_}; "
            f"pass numbers that {type_.element_type} can hold"
        )
    return converted


def _strings(array: Array, type_: TensorType) -> Array:
    """Return an array of Python strings; NumPy's text types are converted."""
    if array.dtype.kind in _TEXT_KINDS:
        array = array.astype(object)
    if array.dtype != object:
        raise InputError(
            f"is {array.dtype}, but the model takes {type_}; pass an array of Python's str"
        )
    wrong = [kind for kind in set(map(type, array.flat)) if not issubclass(kind, str)]
    if wrong:
        raise InputError(
            f"has an element of type {wrong[0].__name__}, but the model takes {type_}; "
            "make all of them str"
        )
    return np.ascontiguousarray(array) if array.ndim else array


def _object(value: Any) -> Any:
    """Return a sequence, map or optional value unchanged.

    Raises:
        InputError: the value cannot be one.
    """
    if isinstance(value, OBJECTS):
        return value
    raise InputError(
        f"is of type {type(value).__name__}, but the model takes a sequence, map or optional "
        f"value; pass a list or dict, or for an optional value what it holds, or None"
    )
