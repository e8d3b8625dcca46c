"""Paddle Lite's tensors: access to a predictor's inputs and outputs."""

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

    setter.__doc__ = f"Set {name} elements from a list, in the shape that `resize` set."
    return setter


def _getter(dtype: type[np.generic]) -> Callable[[Tensor], list[Any]]:
    name = np.dtype(dtype).name

    def getter(self: Tensor) -> list[Any]:
        array = self._value.elements()
        if array.dtype != dtype:
            raise InputError(f"{self._value.name!r} is {array.dtype}, not {name}")
        return array.reshape(-1).tolist()

    getter.__doc__ = f"Return the {name} elements as a list."
    return getter


class Tensor:
    """An input or output of a predictor."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def resize(self, shape: Sequence[int]) -> None:
        """Set the shape.

        Raises:
            InputError: the shape is no sequence of integers.
        """
        self._value.reshape(shape)

    def shape(self) -> list[int]:
        """Return the shape; empty before it is set."""
        return list(self._value.shape) if self._value.has_shape else []

    def from_numpy(self, array: Array, place: TargetType = TargetType.Host) -> None:
        """Copy an array's elements and shape.

        Raises:
            InputError: the value is no array, or Paddle Lite does not have its element type.
        """
        if not isinstance(array, np.ndarray):
            raise InputError(f"from_numpy: {type(array).__name__} is no array of NumPy")
        if array.dtype.newbyteorder("=") not in TYPES:
            supported = ", ".join(dtype.name for dtype in TYPES)
            raise InputError(f"from_numpy: {array.dtype} is given; Paddle Lite has {supported}")
        self._value.copy(array)

    def numpy(self) -> Array:
        """Return a copy of the elements.

        Raises:
            InputError: there are no elements yet.
        """
        return self._value.elements().copy()

    def precision(self) -> PrecisionType:
        """Return the element type; float32 before elements are set."""
        array = self._value.array
        return PrecisionType.FP32 if array is None else TYPES.get(array.dtype, PrecisionType.Unk)

    def target(self) -> TargetType:
        """Return the hardware that holds the elements: the host."""
        return TargetType.Host

    def lod(self) -> Levels:
        """Return the LoD: for each level, the offsets at which sequences begin."""
        return [list(level) for level in self._value.levels]

    def set_lod(self, lod: Levels) -> None:
        """Set the LoD: for each level, the offsets at which sequences begin.

        Raises:
            InputError: a level is no list of integers that starts at 0 and does not decrease.
        """
        self._value.set_levels(lod)

    set_int8_data, int8_data = _setter(np.int8), _getter(np.int8)
    set_uint8_data, uint8_data = _setter(np.uint8), _getter(np.uint8)
    set_int32_data, int32_data = _setter(np.int32), _getter(np.int32)
    set_int64_data, int64_data = _setter(np.int64), _getter(np.int64)
    set_float_data, float_data = _setter(np.float32), _getter(np.float32)
