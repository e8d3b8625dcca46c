"""Elements of constants that are not in memory until somebody asks for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Elements(ABC):
    """The elements of an array that can be had.

    Attributes:
        dtype: the type of the elements.
        shape: of the array that they make.
    """

    __slots__ = ("dtype", "shape")

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The number of bytes that they take."""
        return prod(self.shape) * self.dtype.itemsize

    @abstractmethod
    def reshape(self, shape: tuple[int, ...]) -> Elements:
        """The same elements as an array of another shape."""

    @abstractmethod
    def read(self) -> NDArray[Any]:
        """The elements, in the machine's byte order; not to be written to.

        Raises:
            ModelFileError: they cannot be had any more.
        """

    def own(self) -> NDArray[Any]:
        """The elements in an array that is the caller's alone, to write to.

        Raises:
            ModelFileError: they cannot be had any more.
        """
        return self.read().copy()


class Computed(Elements):
    """Elements that are computed when they are first asked for, and kept from then on.

    What is computed for a device's compiler is so computed by the threads that hash it, and not one
    after the other while the model is being rewritten.

    Args:
        dtype: the type of the elements.
        shape: of the array that they make.
        compute: makes an array of them, the same whenever it is called.
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
            # Two threads may both do so: they make the same.
            array = compute()
            array.flags.writeable = False
            self._array = array
            self._compute = None  # what it is computed from is held no longer
        assert self._array is not None, "it is set before there is nothing more to compute it"
        return self._array
