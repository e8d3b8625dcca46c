"""Constant elements that are read or computed at first use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Elements(ABC):
    """Elements of a constant that are read on demand.

    Attributes:
        dtype: the element type.
        shape: the shape of the array.
    """

    __slots__ = ("dtype", "shape")

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Return the size of the elements in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @abstractmethod
    def reshape(self, shape: tuple[int, ...]) -> Elements:
        """Return the same elements in another shape."""

    @abstractmethod
    def read(self) -> NDArray[Any]:
        """Return the elements as a read-only array in native byte order.

        Raises:
            ModelFileError: the file with the elements is missing or has changed.
        """

    def copy(self) -> NDArray[Any]:
        """Return a new, writable array of the elements.

        Raises:
            ModelFileError: the file with the elements is missing or has changed.
        """
        return self.read().copy()


class Computed(Elements):
    """Elements that are computed at first use and cached.

    Computing on demand lets the threads that hash constants for a device's compiler compute them in
    parallel, instead of one after the other while passes rewrite the model.

    Args:
        dtype: the element type.
        shape: the shape of the array.
        compute: returns the array; must return equal arrays in all calls.
    """

    __slots__ = ("_array", "_compute")

    def __init__(
        self, dtype: np.dtype[Any], shape: tuple[int, ...], compute: Callable[[], NDArray[Any]]
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self._compute: Callable[[], NDArray[Any]] | None = compute
        self._array: NDArray[Any] | None = None

    def reshape(self, shape: tuple[int, ...]) -> Elements:
        return Computed(self.dtype, shape, lambda: self.read().reshape(shape))

    def read(self) -> NDArray[Any]:
        compute = self._compute
        if self._array is None and compute is not None:
            # Two threads may both compute; their results are equal.
            array = compute()
            array.flags.writeable = False
            self._array = array
            self._compute = None  # release the data that it computes from
        assert self._array is not None, "the array is set before the function is released"
        return self._array
