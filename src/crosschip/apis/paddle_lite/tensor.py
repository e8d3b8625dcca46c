"""Tensors: a program's hold on an input or an output of a predictor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from crosschip.apis.paddle.values import Levels, Value
from crosschip.apis.paddle_lite.enumerations import TYPES, PrecisionType, TargetType
from crosschip.ir import Array, InputError


def _setter(dtype: type[np.generic]) -> Callable[..., None]:
    name = np.dtype(dtype).name

    def setter(self: Tensor, data: Sequence[float], type: TargetType = TargetType.Host) -> None:
        shape = tuple(self.shape())
        if len(data) != prod(shape):
            raise InputError(
                f"{self._value.name!r}: {len(data)} elements are given for the shape {list(shape)};"
                f" resize it before"
            )
        self._value.copy(np.array(data, dtype).reshape(shape))

    setter.__doc__ = f"Give elements in {name}, in a list for the shape that `resize` gave."
    return setter


def _getter(dtype: type[np.generic]) -> Callable[[Tensor], list[Any]]:
    name = np.dtype(dtype).name

    def getter(self: Tensor) -> list[Any]:
        array = self._value.elements()
        if array.dtype != dtype:
            raise InputError(f"{self._value.name!r} is {array.dtype}, not {name}")
        return array.reshape(-1).tolist()

    getter.__doc__ = f"The elements in a list; they must be {name}."
    return getter


class Tensor:
    """An input or an output of a predictor, which `get_input` and its like make."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def resize(self, shape: Sequence[int]) -> None:
        """Give sizes.

        Raises:
            InputError: they are no integers.
        """
        self._value.reshape(shape)

    def shape(self) -> list[int]:
        """The sizes; none before there are any."""
        return list(self._value.shape) if self._value.has_shape else []

    def from_numpy(self, array: Array, place: TargetType = TargetType.Host) -> None:
        """Give elements, which are copied, with their shape.

        Raises:
            InputError: it is no array, or of a type that Paddle Lite has not.
        """
        if not isinstance(array, np.ndarray):
            raise InputError(f"from_numpy: {type(array).__name__} is no array of NumPy")
        if array.dtype.newbyteorder("=") not in TYPES:
            known = ", ".join(dtype.name for dtype in TYPES)
            raise InputError(f"from_numpy: {array.dtype} is given; Paddle Lite has {known}")
        self._value.copy(array)

    def numpy(self) -> Array:
        """A new array with the elements.

        Raises:
            InputError: there are none yet.
        """
        return self._value.elements().copy()

    def precision(self) -> PrecisionType:
        """The type of the elements; float32 before there are any."""
        array = self._value.array
        return PrecisionType.FP32 if array is None else TYPES.get(array.dtype, PrecisionType.Unk)

    def target(self) -> TargetType:
        """The hardware that they are on: the host."""
        return TargetType.Host

    def lod(self) -> Levels:
        """The offsets at which sequences begin, a list for each level."""
        return [list(level) for level in self._value.levels]

    def set_lod(self, lod: Levels) -> None:
        """Give the offsets at which sequences begin, a list for each level.

        Raises:
            InputError: they are no such lists.
        """
        self._value.set_levels(lod)

    set_int8_data, int8_data = _setter(np.int8), _getter(np.int8)
    set_uint8_data, uint8_data = _setter(np.uint8), _getter(np.uint8)
    set_int32_data, int32_data = _setter(np.int32), _getter(np.int32)
    set_int64_data, int64_data = _setter(np.int64), _getter(np.int64)
    set_float_data, float_data = _setter(np.float32), _getter(np.float32)
