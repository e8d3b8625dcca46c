"""Python implementation of a C library's functions."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from importlib import import_module
from typing import Any, Generic, TypeVar

from crosschip.apis.c.handles import HANDLES, NoHandle
from crosschip.apis.c.libraries import LIBRARIES, PREFIX
from crosschip.apis.results import Handle, Results, last_error

C = TypeVar("C", bound=IntEnum)


class Bindings(Generic[C]):
    """The functions of a library, as methods of the same names.

    They receive C's arguments, with handles as numbers. An exception becomes the code that the
    function returns; it is logged, and `crosschip_last_error` returns its text.

    Args:
        ffi: the library's cffi declarations.
        lib: the library's C functions for Python.
        results: the interface's codes.
    """

    def __init__(self, ffi: Any, lib: Any, results: Results[C]) -> None:
        self.ffi = ffi
        self.results = results
        self._lib = lib
        self._modules = 0
        self._last_text = threading.local()

    # Arguments.

    def check_not_null(self, **pointers: Any) -> None:
        """Check that pointers are not `NULL`.

        Raises:
            Failure: a pointer is `NULL`; the message names it.
        """
        for name, pointer in pointers.items():
            if not pointer:
                raise self.results.invalid(f"{name} is NULL")

    def text(self, pointer: Any) -> str | None:
        """Return a C string, `None` for `NULL`; decoded as file names are."""
        if not pointer:
            return None
        content: bytes = self.ffi.string(pointer)
        return content.decode("utf-8", "surrogateescape")

    def objects(self, name: str, numbers: Any, length: int) -> list[Any]:
        """Return the objects of an array of handles, up to the first invalid one.

        Raises:
            Failure: the array is `NULL` although its length is not 0.
        """
        if length:
            self.check_not_null(**{name: numbers})
        objects: list[Any] = []
        for index in range(length):
            objects.append(HANDLES.get(numbers[index]))
            if isinstance(objects[-1], NoHandle):
                break
        return objects

    def memory(self, name: str, pointer: Any, length: int) -> Any:
        """Return a buffer of the program's memory at a pointer.

        Raises:
            Failure: the pointer is `NULL` although the length is not 0.
        """
        if length:
            self.check_not_null(**{name: pointer})
        return self.ffi.buffer(pointer, length) if pointer else b""

    # Results.

    def store(self, pointer: Any, result: tuple[C, Any]) -> C:
        """Store a function's result, if it succeeded, and return its code."""
        code, value = result
        if value is not None:
            pointer[0] = value
        return code

    def store_handle(self, pointer: Any, result: tuple[C, Any], parent: int = 0) -> C:
        """Store a new handle of a function's result, if it succeeded, and return its code.

        Args:
            pointer: where to store the handle.
            result: the code and the object.
            parent: the handle with which the new one is removed; 0 for none.
        """
        code, object_ = result
        if object_ is not None:
            pointer[0] = HANDLES.add(object_, parent)
        return code

    def store_text(self, number: int, text: str) -> Any:
        """Return a C string that lives as long as a handle."""
        buffers = HANDLES.buffers_of(number)
        if text not in buffers:
            buffers[text] = self.new_text(text)
        return buffers[text]

    def destroy(self, number: int, destroy_object: Callable[[Any], object]) -> None:
        """Destroy an object, and remove its handle if that succeeds."""
        object_ = HANDLES.get(number)
        destroy_object(object_)
        if isinstance(object_, Handle) and object_.destroyed:
            HANDLES.remove(number)

    def end_runs_first(self) -> None:
        """Register the end of runs again, so that runs end before newly loaded libraries do."""
        if len(sys.modules) > self._modules:
            self._modules = len(sys.modules)
            self._lib.crosschip_end_before()

    def last_error(self) -> Any:
        """Return this thread's last error text; valid until the thread's next call."""
        text = last_error()
        if getattr(self._last_text, "text", None) != text:
            self._last_text.text, self._last_text.memory = text, self.new_text(text)
        return self._last_text.memory

    def failed(self, name: str, returns_code: bool, *exception: Any) -> C | None:
        """Return a function's result after an exception: its code, or nothing."""
        error = exception[1]
        if not isinstance(error, Exception):
            error = RuntimeError(f"{type(error).__name__} {error}")
        code = self.results.failed(name, error)
        return code if returns_code else None

    def new_text(self, text: str) -> Any:
        """Return a new C string, which lives as long as the result is referenced."""
        return self.ffi.new("char[]", text.encode("utf-8", "replace"))


def connect(ffi: Any, lib: Any, name: str) -> None:
    """Connect a loaded library's functions to their Python implementation.

    Args:
        ffi: the library's cffi declarations.
        lib: the library's C functions for Python.
        name: the library's name.
    """
    library = next(library for library in LIBRARIES if library.name == name)
    module, _, kind = library.bindings.partition(":")
    bindings = getattr(import_module(module), kind)(ffi, lib)
    ffi.def_extern(name=f"{PREFIX}last_error")(bindings.last_error)
    for function in library.header.functions:
        failed = partial(bindings.failed, function.name, function.result in library.failures)
        method = getattr(bindings, function.name)
        ffi.def_extern(name=f"{PREFIX}{function.name}", onerror=failed)(method)
