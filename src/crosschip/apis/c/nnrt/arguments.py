"""Conversion of arguments and results, shared by NNRt's libraries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from crosschip.apis.c.bindings import Bindings
from crosschip.apis.c.handles import HANDLES
from crosschip.apis.nnrt import OH_NN_QuantParam, OH_NN_ReturnCode, OH_NN_Tensor
from crosschip.apis.nnrt.results import RESULTS, invalid
from crosschip.apis.results import Handle

MAX_LENGTH = 200
"""The maximum length of a list of tensors and of a shape; longer ones are refused."""


class NNRtBindings(Bindings[OH_NN_ReturnCode]):
    """The base of both libraries' bindings.

    Args:
        ffi: the library's cffi declarations.
        lib: the library's C functions for Python.
    """

    def __init__(self, ffi: Any, lib: Any) -> None:
        super().__init__(ffi, lib, RESULTS)

    def handle(self, object_: object, parent: int = 0) -> int:
        """Return a new handle of an interface function's result; 0 for `None`."""
        return 0 if object_ is None else HANDLES.add(object_, parent)

    def destroy_stored(self, name: str, pointer: Any, destroy_object: Callable[[Any], Any]) -> Any:
        """Destroy the object of a stored handle and overwrite the handle with `NULL`."""
        self.check_not_null(**{name: pointer})
        number = pointer[0]
        object_ = HANDLES.get(number)
        result = destroy_object(object_)
        if isinstance(object_, Handle) and object_.destroyed:
            HANDLES.remove(number)
            pointer[0] = 0
        return result

    def check_points_to_null(self, **pointers: Any) -> None:
        """Check that pointers are not `NULL`, but point to `NULL`.

        Raises:
            Failure: a pointer is `NULL`, or points to another pointer.
        """
        self.check_not_null(**pointers)
        for name, pointer in pointers.items():
            if pointer[0]:
                raise invalid(f"*{name} is not NULL")

    def store_array(self, number: int, key: Hashable, kind: str, values: Sequence[int]) -> Any:
        """Return a C array that lives as long as a handle, or until it is replaced."""
        array = HANDLES.buffers_of(number)[key] = self.ffi.new(kind, values)
        return array

    def numbers(self, name: str, pointer: Any, count: int) -> list[Any]:
        """Return the elements of an array.

        Raises:
            Failure: the pointer is `NULL` although the array is not empty.
        """
        if not count:
            return []
        self.check_not_null(**{name: pointer})
        values: list[Any] = self.ffi.unpack(pointer, count)
        return values

    def indices(self, name: str, array: Any) -> list[int] | None:
        """Return the elements of an `OH_NN_UInt32Array`; `None` for `NULL`.

        Raises:
            Failure: the array is too long, or data pointer and size contradict each other.
        """
        if not array:
            return None
        if array.size > MAX_LENGTH:
            raise invalid(f"{name} has {array.size} elements, but {MAX_LENGTH} at most")
        if array.data and not array.size:
            raise invalid(f"{name}->data is not NULL, but {name}->size is 0")
        return self.numbers(f"{name}->data", array.data, array.size)

    def tensor(self, pointer: Any) -> OH_NN_Tensor | None:
        """Return the Python form of an `OH_NN_Tensor`; `None` for `NULL`.

        Raises:
            Failure: an array in it is `NULL`, or too long.
        """
        if not pointer:
            return None
        if pointer.dimensionCount > MAX_LENGTH:
            raise invalid(f"{pointer.dimensionCount} axes are more than {MAX_LENGTH}")
        sizes = self.numbers("dimensions", pointer.dimensions, pointer.dimensionCount)
        params, quantization = None, pointer.quantParam
        if quantization and quantization.quantCount:
            params = OH_NN_QuantParam(
                self.numbers("numBits", quantization.numBits, quantization.quantCount),
                self.numbers("scale", quantization.scale, quantization.quantCount),
                self.numbers("zeroPoint", quantization.zeroPoint, quantization.quantCount),
            )
        return OH_NN_Tensor(pointer.dataType, tuple(sizes), params, pointer.type)
