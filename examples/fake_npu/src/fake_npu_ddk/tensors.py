"""Tensors as the chip knows them: type, shape, and how integers stand for reals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CHANNELS = 16
"""The last axis of every tensor is filled up to a multiple of so many elements."""

BLOCK = 64
"""Tensors begin at a multiple of so many bytes."""


class DataType(IntEnum):
    """The type of an element."""

    UINT8 = 1
    """Stands for `(integer - zero_point) * scale`."""
    FLOAT16 = 2
    INT32 = 3
    """For constants that are added to sums."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type in NumPy."""
        return _DTYPES[self]


_DTYPES: dict[DataType, np.dtype[Any]] = {
    DataType.UINT8: np.dtype("u1"),
    DataType.FLOAT16: np.dtype("<f2"),
    DataType.INT32: np.dtype("<i4"),
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor; images are [N, H, W, C].

    Attributes:
        type: the type of the elements.
        shape: one to four sizes; the last axis holds the channels.
        scale: the real that one step of a `UINT8` stands for; 0 for other types.
        zero_point: the `UINT8` that stands for 0.
    """

    type: DataType
    shape: tuple[int, ...]
    scale: float = 0.0
    zero_point: int = 0

    @property
    def aligned_shape(self) -> tuple[int, ...]:
        """The shape with the channels filled up, as it lies in memory."""
        return (*self.shape[:-1], -(-self.shape[-1] // CHANNELS) * CHANNELS)

    @property
    def size(self) -> int:
        """The bytes that it takes in the chip's memory."""
        return math.prod(self.aligned_shape) * self.type.dtype.itemsize

    def view(self, memory: Array, offset: int = 0) -> Array:
        """The elements, without those that fill up channels, in bytes of memory."""
        dtype = self.type.dtype
        whole = memory[offset : offset + self.size].view(dtype).reshape(self.aligned_shape)
        return whole[..., : self.shape[-1]]
