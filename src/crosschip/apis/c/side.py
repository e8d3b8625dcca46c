"""The Python side of a C library: what its functions call."""

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


class Side(Generic[C]):
    """The functions of a library, as methods of the same names.

    They take what C passes, handles as numbers. What they raise becomes the code that the function
    returns; it is told, and `crosschip_last_error` has its text.

    Args:
        ffi: the library's declarations, to make and read its structures with.
        lib: what it has for this side.
        results: the codes of the interface.
    """

    def __init__(self, ffi: Any, lib: Any, results: Results[C]) -> None:
        self.ffi = ffi
        self.results = results
        self._lib = lib
        self._modules = 0
        self._last_text = threading.local()

    # What a program passes.

    def needed(self, **pointers: Any) -> None:
        """Check that there are places to store something, by their names.

        Raises:
            Failure: one is `NULL`.
        """
        for name, pointer in pointers.items():
            if not pointer:
                raise self.results.invalid(f"{name} is NULL")

    def text(self, pointer: Any) -> str | None:
        """A string of C; `None` if there is none. Bytes that are no UTF-8 are as in file names."""
        if not pointer:
            return None
        read: bytes = self.ffi.string(pointer)
        return read.decode("utf-8", "surrogateescape")

    def objects(self, name: str, numbers: Any, length: int) -> list[Any]:
        """The objects of an array of handles, as far as the first that is none.

        Raises:
            Failure: the array is `NULL`, but not empty.
        """
        if length:
            self.needed(**{name: numbers})
        objects: list[Any] = []
        for index in range(length):
            objects.append(HANDLES.get(numbers[index]))
            if isinstance(objects[-1], NoHandle):
                break
        return objects

    def memory(self, name: str, pointer: Any, length: int) -> Any:
        """The memory at a pointer, shared with the program.

        Raises:
            Failure: the pointer is `NULL`, but the memory not empty.
        """
        if length:
            self.needed(**{name: pointer})
        return self.ffi.buffer(pointer, length) if pointer else b""

    # What is given to it.

    def store(self, place: Any, answer: tuple[C, Any]) -> C:
        """Store what a function of the face gave, if it succeeded; its code."""
        code, value = answer
        if value is not None:
            place[0] = value
        return code

    def store_handle(self, place: Any, answer: tuple[C, Any], whole: int = 0) -> C:
        """Store a new handle of what a function of the face made, if it succeeded; its code.

        Args:
            place: where to store it.
            answer: the code, and what was made.
            whole: the handle of an object that it ends with.
        """
        code, object_ = answer
        if object_ is not None:
            place[0] = HANDLES.add(object_, whole)
        return code

    def store_text(self, number: int, text: str) -> Any:
        """A string of C that is there as long as the object of a handle."""
        objects = HANDLES.objects_of(number)
        if text not in objects:
            objects[text] = self.new_text(text)
        return objects[text]

    def destroy(self, number: int, destroyed: Callable[[Any], object]) -> None:
        """Destroy an object, and forget its handle if that succeeds."""
        object_ = HANDLES.get(number)
        destroyed(object_)
        if isinstance(object_, Handle) and object_.destroyed:
            HANDLES.remove(number)

    def end_runs_first(self) -> None:
        """See that runs end before libraries that have been loaded since the last call do."""
        if len(sys.modules) > self._modules:
            self._modules = len(sys.modules)
            self._lib.crosschip_end_before()

    def last_error(self) -> Any:
        """The text of the last failure in this thread; there until the next call in it."""
        text = last_error()
        if getattr(self._last_text, "text", None) != text:
            self._last_text.text, self._last_text.memory = text, self.new_text(text)
        return self._last_text.memory

    def failed(self, name: str, returns_code: bool, *raised: Any) -> C | None:
        """What a function returns that has raised an exception: its code, or else nothing."""
        error = raised[1]
        if not isinstance(error, Exception):
            error = RuntimeError(f"{type(error).__name__} {error}")
        code = self.results.failed(name, error)
        return code if returns_code else None

    def new_text(self, text: str) -> Any:
        """A string of C; it is there as long as what is returned."""
        return self.ffi.new("char[]", text.encode("utf-8", "replace"))


def connect(ffi: Any, lib: Any, name: str) -> None:
    """Connect the functions of a library that has been loaded with their Python side.

    Args:
        ffi: the library's declarations.
        lib: what it has for the Python side.
        name: its name.
    """
    library = next(library for library in LIBRARIES if library.name == name)
    module, _, kind = library.side.partition(":")
    side = getattr(import_module(module), kind)(ffi, lib)
    ffi.def_extern(name=f"{PREFIX}last_error")(side.last_error)
    for function in library.header.functions:
        failed = partial(side.failed, function.name, function.result in library.failures)
        method = getattr(side, function.name)
        ffi.def_extern(name=f"{PREFIX}{function.name}", onerror=failed)(method)
