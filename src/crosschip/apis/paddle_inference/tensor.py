"""Paddle Inference's tensor handles: access to a predictor's inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.apis.paddle.values import Levels, Value
from crosschip.apis.paddle_inference.enumerations import TYPES, DataType
from crosschip.ir import Array, ElementType, InputError, TensorType
from crosschip.runtime.arrays import as_array

_WIDER = {"int16": "int32", "uint16": "int32", "uint32": "int64"}
"""The wider types to which elements are converted where Paddle lacks their type."""


class Tensor:
    """An input or output of a predictor.

    Args:
        value: the elements, shape and LoD.
        is_input: whether the program may set the elements.
    """

    def __init__(self, value: Value, *, is_input: bool) -> None:
        self._value = value
        self._is_input = is_input

    def name(self) -> str:
        """Return the model's name for the tensor."""
        return self._value.name

    def reshape(self, shape: Sequence[int]) -> None:
        """Set the shape in advance; the next `copy_from_cpu` replaces it.

        Raises:
            InputError: the tensor is an output, or the shape is no sequence of integers.
        """
        self._check_input("reshape")
        self._value.reshape(shape)

    def copy_from_cpu(self, data: Array | list[str]) -> None:
        """Copy an array's elements and shape.

        Raises:
            InputError: the tensor is an output, or the data are no array, or Paddle does not
                have their type.
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
            data = self._widen(data)
        self._value.copy(data)

    def share_external_data(self, data: Any) -> None:
        """Use an array, or a tensor with `__array__` or `__dlpack__`, without a copy.

        The next run reads what its owner has written to it by then.

        Raises:
            InputError: the tensor is an output, or the data have no array view.
        """
        self._check_input("share_external_data")
        array = data if isinstance(data, np.ndarray) else _array_view(data)
        self._value.share(array if array.dtype in TYPES else self._widen(array))

    def copy_to_cpu(self) -> Array:
        """Return a copy of the elements.

        Raises:
            InputError: there are no elements yet.
        """
        return self._value.elements().copy()

    def shape(self) -> list[int]:
        """Return the shape; `[0]` before it is set."""
        return list(self._value.shape)

    def type(self) -> DataType:
        """Return the element type; float32 before elements are set."""
        array = self._value.array
        return DataType.FLOAT32 if array is None else TYPES.get(array.dtype, DataType.FLOAT32)

    def lod(self) -> Levels:
        """Return the LoD: for each level, the offsets at which sequences begin."""
        return [list(level) for level in self._value.levels]

    def set_lod(self, lod: Levels) -> None:
        """Set the LoD: for each level, the offsets at which sequences begin.

        Raises:
            InputError: the tensor is an output, or a level is no list of integers that starts
                at 0 and does not decrease.
        """
        self._check_input("set_lod")
        self._value.set_levels(lod)

    def _check_input(self, name: str) -> None:
        if not self._is_input:
            raise InputError(f"{name}: {self._value.name!r} is an output, which only runs write")

    def _widen(self, data: Array) -> Array:
        """Convert elements to a type that Paddle has."""
        native = data.dtype.newbyteorder("=")
        wider = _WIDER.get(native.name, native)
        if np.dtype(wider) not in TYPES:
            supported = ", ".join(dtype.name for dtype in TYPES)
            raise InputError(f"{self._value.name!r} is given {data.dtype}; Paddle has {supported}")
        return data.astype(wider)


def _array_view(data: Any) -> Array:
    """Return an array that shares the memory of another library's tensor."""
    try:
        if hasattr(data, "__dlpack__"):
            return np.from_dlpack(data)
        return np.asarray(data, copy=False)
    except Exception as error:  # foreign code may raise anything
        raise InputError(
            f"share_external_data: {type(data).__name__} is not on the processor as an array is "
            f"({error}); use copy_from_cpu"
        ) from error
