"""Arrays from what callers have: any layout in memory, other libraries' tensors, plain numbers."""

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
    """An aligned C-contiguous array of the element type; what is one already is not copied.

    An array keeps its element type; of NumPy's types that are alike (`longlong`) or differ in byte
    order it becomes the usual one. Plain numbers and lists of them become the element type if it
    holds them: integers exactly, other numbers rounded to the nearest.

    Args:
        value: an array, of NumPy or a subclass of its; anything with `__array__` or `__dlpack__`,
            on the processor; a number, or lists of numbers; for `STRING`, texts; for `OBJECT`, a
            list, a dictionary, an array or `None`, which stays what it is.
        type_: what a model takes; its shape does not count.

    Raises:
        InputError: it cannot be made an array, or one of the element type.
    """
    element_type = type_.element_type
    if element_type is ElementType.OBJECT:
        checked: Array = _object(value)
        return checked
    array = value if isinstance(value, np.ndarray) else _array_by_protocol(value)
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InputError("has masked elements; pass array.filled(...), which says what they are")
    if element_type is ElementType.STRING:
        return _strings(np.asarray(array), type_)
    wanted = element_type.dtype
    if array.dtype.newbyteorder("=") == wanted:
        usual = np.require(np.asarray(array), array.dtype.newbyteorder("="), ("C", "A"))
        return usual.view(wanted)
    if _is_plain(value) and array.dtype.kind in _NUMBER_KINDS:
        return _converted(array, type_)
    raise InputError(
        f"is {array.dtype}, but the model takes {type_}; pass array.astype({str(element_type)!r})"
    )


def _array_by_protocol(value: Any) -> Array:
    """An array of what is none, by the first protocol that works."""
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        return np.asarray(value)
    except Exception as error:  # foreign code: whatever it raises is its failure
        raise_interruption(error)
        array = _narrow(value)
        if array is not None:
            return array
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"cannot be made an array: {text[0]} ({type(value).__name__}); pass one"
        ) from error


def _narrow(value: Any) -> Array | None:
    """An array of a tensor whose element type is none of NumPy's own."""
    from crosschip.runtime.dlpack import narrow_array

    try:
        return narrow_array(value) if hasattr(value, "__dlpack__") else None
    except Exception:  # foreign code: what NumPy was told says better what is wrong
        return None


def _is_plain(value: object) -> bool:
    """Tell whether it is numbers or lists without an element type of their own."""
    return isinstance(value, bool | int | float | list | tuple | range) and not isinstance(
        value, np.generic
    )


def _converted(numbers: Array, type_: TensorType) -> Array:
    """Plain numbers as elements of a type that holds them."""
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
    """An array of Python's strings; NumPy has types of its own for text."""
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
    """A value that is no tensor, as it is.

    Raises:
        InputError: it can be no sequence, map or optional value.
    """
    if isinstance(value, OBJECTS):
        return value
    raise InputError(
        f"is of type {type(value).__name__}, but the model takes a sequence, map or optional "
        f"value; pass a list or dict, or for an optional value what it holds, or None"
    )
