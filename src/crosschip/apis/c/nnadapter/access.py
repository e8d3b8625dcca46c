"""A C program's access functions, as the Python interface calls them."""

from __future__ import annotations

import math
from typing import Any

from crosschip.apis.c.nnadapter.types import Types
from crosschip.apis.nnadapter import NNAdapterOperandType
from crosschip.apis.nnadapter.operands import element_type
from crosschip.apis.nnadapter.results import invalid


class Access:
    """An access function.

    Args:
        ffi: the library's cffi declarations.
        types: reads and writes C structures.
        function: the program's access function.
        is_input: whether it accesses an input, and so writes the shape.
    """

    __slots__ = ("_ffi", "_function", "_is_input", "_itemsize", "_template", "_types")

    def __init__(self, ffi: Any, types: Types, function: Any, *, is_input: bool) -> None:
        self._ffi = ffi
        self._types = types
        self._function = function
        self._is_input = is_input
        self._template: Any = None
        self._itemsize = 0

    def __call__(self, memory: Any, type_: NNAdapterOperandType, device_buffer: object) -> Any:
        """Return the program's buffer of an input or output.

        Raises:
            Failure: the function returned `NULL`, or more axes than allowed.
        """
        argument = self._type_argument(type_)
        pointer = self._function(memory, argument, self._ffi.NULL)
        sizes = type_.dimensions.data
        if self._is_input:
            sizes = type_.dimensions.data = self._types.sizes(argument.dimensions)
        if any(size < 0 for size in sizes):
            return bytearray()  # the Python interface refuses such sizes
        length = math.prod(sizes) * self._itemsize
        if not pointer and length:
            raise invalid("the access function returned NULL")
        return self._ffi.buffer(pointer, length) if length else bytearray()

    def _type_argument(self, type_: NNAdapterOperandType) -> Any:
        """Return a type for the access function to read or write."""
        if self._template is None:
            # The scales that it points to live as long as this object.
            self._template = self._types.new_from(type_)
            self._itemsize = element_type(type_.precision).dtype.itemsize
        argument = self._types.copy(self._template.pointer)
        if not self._is_input:
            self._types.write_sizes(argument.dimensions, type_.dimensions.data, ())
        return argument
