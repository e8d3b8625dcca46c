"""Access functions of a program in C, as the Python face calls them."""

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
        ffi: the library's declarations.
        types: reads and writes structures.
        function: the program's function.
        is_input: whether it is that of an input, which tells the sizes.
    """

    __slots__ = ("_blank", "_ffi", "_function", "_is_input", "_itemsize", "_types")

    def __init__(self, ffi: Any, types: Types, function: Any, *, is_input: bool) -> None:
        self._ffi = ffi
        self._types = types
        self._function = function
        self._is_input = is_input
        self._blank: Any = None
        self._itemsize = 0

    def __call__(self, memory: Any, type_: NNAdapterOperandType, device_buffer: object) -> Any:
        """The memory that the program has for an input or output.

        Raises:
            Failure: it has none, or tells more axes than there can be.
        """
        passed = self._passed(type_)
        pointer = self._function(memory, passed, self._ffi.NULL)
        sizes = type_.dimensions.data
        if self._is_input:
            sizes = type_.dimensions.data = self._types.sizes(passed.dimensions)
        if any(size < 0 for size in sizes):
            return bytearray()  # the face refuses such sizes
        length = math.prod(sizes) * self._itemsize
        if not pointer and length:
            raise invalid("the access function returned NULL")
        return self._ffi.buffer(pointer, length) if length else bytearray()

    def _passed(self, type_: NNAdapterOperandType) -> Any:
        """What the program's function is passed: a type of its own, which it may write into."""
        if self._blank is None:
            # The scales that it points to stay with what was compiled, as does the type.
            self._blank = self._types.written(type_)
            self._itemsize = element_type(type_.precision).dtype.itemsize
        passed = self._types.copy(self._blank.pointer)
        if not self._is_input:
            self._types.write_sizes(passed.dimensions, type_.dimensions.data, ())
        return passed
