"""Handles: a program's hold on an input or an output of a predictor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.apis.paddle.values import Levels, Value
from crosschip.apis.paddle_inference.enumerations import TYPES, DataType
from crosschip.ir import Array, ElementType, InputError, TensorType
from crosschip.runtime.arrays import as_array

_WIDER = {"int16": "int32", "uint16": "int32", "uint32": "int64"}
"""The types that Paddle takes elements of other types for."""


class Tensor:
    """An input or an output of a predictor, which `Predictor.get_input_handle` and its like make.

    Args:
        value: what it holds.
        is_input: whether the program gives it.
    """

    def __init__(self, value: Value, *, is_input: bool) -> None:
        self._value = value
        self._is_input = is_input

    def name(self) -> str:
        """The name that the model has for it."""
        return self._value.name

    def reshape(self, shape: Sequence[int]) -> None:
        """Give sizes in advance, which the next `copy_from_cpu` replaces by its own.

        Raises:
            InputError: it is an output, or no shape.
        """
        self._check_input("reshape")
        self._value.reshape(shape)

    def copy_from_cpu(self, data: Array | list[str]) -> None:
        """Give elements, which are copied.

        Raises:
            InputError: it is an output, or the data are no array or of a type that Paddle has not.
        """
        self._check_input("copy_from_cpu")
        if isinstance(data, list) and data and isinstance(data[0], str):
            data = as_array(data, TensorType(ElementType.STRING, None))
        elif not isinstance(data, np.ndarray):
            raise InputError(
                f"copy_from_cpu: {self._value.name!r} is given a {type(data).__name__}, "
                f"but takes an array of NumPy or a list of str"
            )
        elif data.dtype not in TYPES:
            data = self._widened(data)
        self._value.copy(data)

    def share_external_data(self, data: Any) -> None:
        """Give elements, which are not copied: an array or tensor with `__array__` or `__dlpack__`.

        What its owner writes to it is what the next run reads.

        Raises:
            InputError: it is an output, or the data cannot be made an array without a copy.
        """
        self._check_input("share_external_data")
        array = data if isinstance(data, np.ndarray) else _lying(data)
        self._value.share(array if array.dtype in TYPES else self._widened(array))

    def copy_to_cpu(self) -> Array:
        """A new array with the elements.

        Raises:
            InputError: there are none yet.
        """
        return self._value.elements().copy()

    def shape(self) -> list[int]:
        """The sizes; `[0]` before there are any."""
        return list(self._value.shape)

    def type(self) -> DataType:
        """The type of the elements; float32 before there are any."""
        array = self._value.array
        return DataType.FLOAT32 if array is None else TYPES.get(array.dtype, DataType.FLOAT32)

    def lod(self) -> Levels:
        """The offsets at which sequences begin, a list for each level."""
        return [list(level) for level in self._value.levels]

    def set_lod(self, lod: Levels) -> None:
        """Give the offsets at which sequences begin, a list for each level.

        Raises:
            InputError: it is an output, or they are no such lists.
        """
        self._check_input("set_lod")
        self._value.set_levels(lod)

    def _check_input(self, name: str) -> None:
        if not self._is_input:
            raise InputError(f"{name}: {self._value.name!r} is an output, which only runs write")

    def _widened(self, data: Array) -> Array:
        """Elements of a type that Paddle has."""
        usual = data.dtype.newbyteorder("=")
        wanted = _WIDER.get(usual.name, usual)
        if np.dtype(wanted) not in TYPES:
            known = ", ".join(dtype.name for dtype in TYPES)
            raise InputError(f"{self._value.name!r} is given {data.dtype}; Paddle has {known}")
        return data.astype(wanted)


def _lying(data: Any) -> Array:
    """An array that looks into the memory of another library's tensor."""
    try:
        if hasattr(data, "__dlpack__"):
            return np.from_dlpack(data)
        return np.asarray(data, copy=False)
    except Exception as error:  # foreign code: whatever it raises is its failure
        raise InputError(
            f"share_external_data: {type(data).__name__} is not on the processor as an array is "
            f"({error}); use copy_from_cpu"
        ) from error
