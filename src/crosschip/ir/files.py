"""Files that are read piece by piece, and constants whose elements are still in one.

Only regular files are opened, to be read as to be written: a pipe would wait for somebody to write,
and a terminal for somebody to type. Nothing is mapped into memory, so that a file that is cut off
while it is used is an error like any other.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import weakref
from abc import ABC, abstractmethod
from functools import cache
from io import FileIO
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.ir.elements import Elements
from crosschip.ir.errors import ModelFileError
from crosschip.ir.reading import StrPath, note_file

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_FLAGS = getattr(os, "O_NONBLOCK", 0)
"""A pipe is opened without waiting for its other end."""

_OWN_FLAGS = (
    _FLAGS
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)

_NOT_REGULAR = "is not a regular file"

_SMALL = 2**15
"""Up to so many bytes are read at once: to ask again would take longer than to read them."""

_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER = 1024
"""The beginning of a file of Git LFS's, and the most bytes that it has."""

_WINDOW = 2**14
"""The bytes that are read to look at a few."""


def open_regular(path: StrPath, *, follow: bool = True) -> FileIO:
    """A file, opened to be read without a buffer.

    Args:
        path: the file.
        follow: open what a symbolic link at this place leads to; refused otherwise.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe, a socket or a device.
    """
    flags = _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, _NOT_REGULAR)
    return FileIO(descriptor)


def file_end(path: StrPath, most: int) -> bytes:
    """The last bytes of a regular file that is not a symbolic link.

    Args:
        path: the file.
        most: how many bytes are read at most.

    Raises:
        OSError: it cannot be read, or is no such file.
    """
    with open_regular(path, follow=False) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def open_own(path: StrPath, flags: int, mode: int = 0o600) -> int:
    """Open a regular file of this user to write to it or to lock it; return the descriptor.

    Whoever can write to the folder can put something else there before: a symbolic or hard link to
    a file that is not to be changed, or a pipe, which would make the process wait. Neither is
    followed, waited for or changed.

    Args:
        path: the file.
        flags: of `os.open`. `O_TRUNC` must not be among them, since it comes before the checks; use
            `os.ftruncate`.
        mode: of a file that is created.

    Raises:
        OSError: it cannot be opened, or is not a regular file, has several names, or belongs to
            another user.
    """
    try:
        descriptor = os.open(path, flags | _OWN_FLAGS, mode)
    except OSError as error:
        # A symbolic link, or a pipe that nobody reads from.
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise OSError(error.errno, _NOT_REGULAR) from None
        raise
    state = os.fstat(descriptor)
    problem = ""
    if not stat.S_ISREG(state.st_mode):
        problem = _NOT_REGULAR
    elif hasattr(os, "geteuid") and state.st_uid != os.geteuid():
        problem = "belongs to another user"
    elif state.st_nlink > 1:
        problem = "has a second name (a hard link)"
    if problem:
        os.close(descriptor)
        raise OSError(errno.EPERM, problem)
    return descriptor


class Source(ABC):
    """Bytes that a model is read from.

    Attributes:
        size: how many.
    """

    size: int

    @abstractmethod
    def read(self, begin: int, end: int) -> bytes:
        """The bytes between two places.

        Raises:
            OSError: they cannot be read, or have changed.
        """

    @abstractmethod
    def elements(self, dtype: np.dtype[Any], count: int, offset: int) -> NDArray[Any] | Stored:
        """A list of elements, lowest byte first, from a place on."""


class Window:
    """The part of a source that is being looked at; it moves along."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._begin = 0
        self._held = b""

    def at(self, place: int, count: int) -> tuple[bytes, int]:
        """Bytes of the source, and where in them the `count` from a place on begin.

        There may be fewer only at the end of the source.

        Raises:
            OSError: they cannot be read, or have changed.
        """
        index = place - self._begin
        if not 0 <= index <= len(self._held) - count:
            self._begin, index = place, 0
            end = min(place + max(count, _WINDOW), self.source.size)
            self._held = self.source.read(place, end)
        return self._held, index

    def elements(self, dtype: np.dtype[Any], count: int, place: int) -> NDArray[Any] | Stored:
        """A list of elements, lowest byte first, from a place on; few are copied from here.

        Raises:
            OSError: they cannot be read, or have changed.
        """
        size = count * dtype.itemsize
        if size > _SMALL:
            return self.source.elements(dtype, count, place)
        held, index = self.at(place, size)
        return Held(held[index : index + size]).elements(dtype, count, 0)


class Held(Source):
    """Bytes in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = len(content)

    def read(self, begin: int, end: int) -> bytes:
        return self._content[begin:end]

    def elements(self, dtype: np.dtype[Any], count: int, offset: int) -> NDArray[Any] | Stored:
        lying: NDArray[Any] = np.frombuffer(self._content, _low_first(dtype), count, offset)
        return np.require(lying, dtype, "A")


class DataFile(Source):
    """A regular file, open as long as somebody may still read from it.

    The file may be moved, removed, or replaced by another one of its name meanwhile. If it is
    written to, which its time of modification and its size show, nothing more is read from it.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open_regular(path)
        note_file(path, self._file.fileno())
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._state = self._look()
        self.size = self._state[0]
        if self.size < _LONGEST_POINTER and self.read(0, self.size).startswith(_POINTER):
            raise OSError(
                None, "is a Git LFS pointer, not the file itself; get that with `git lfs pull`"
            )

    def read(self, begin: int, end: int) -> bytes:
        content = bytearray(end - begin)
        self._fill(memoryview(content), begin)
        return bytes(content)

    def elements(self, dtype: np.dtype[Any], count: int, offset: int) -> NDArray[Any] | Stored:
        stored = Stored(self, dtype, (count,), offset)
        return stored if stored.nbytes > _SMALL else stored.read()

    def fill(self, array: NDArray[Any], offset: int) -> None:
        """Read the elements of an array, from a place on.

        Raises:
            OSError: they cannot be read, or have changed.
        """
        self._fill(array.reshape(-1).view(np.uint8).data, offset)

    def _fill(self, target: memoryview, offset: int) -> None:
        done = 0
        while done < len(target):
            count = self._read_some(target[done:], offset + done)
            if not count:
                break
            done += count
        if done < len(target) or self._look() != self._state:
            raise OSError(None, "has changed since it was loaded; load it again")

    def _read_some(self, target: memoryview, offset: int) -> int | None:
        if hasattr(os, "preadv"):  # several threads at once
            return os.preadv(self._file.fileno(), [target], offset)
        with self._lock:
            self._file.seek(offset)
            return self._file.readinto(target)

    def _look(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns


class Stored(Elements):
    """Elements in a file, which are read when somebody asks for them and kept while he holds them.

    Args:
        file: where they are, the lowest byte of each first.
        dtype: their type.
        shape: of the array that they make.
        offset: where in the file they begin, in bytes.
    """

    __slots__ = ("_file", "_offset", "_read")

    def __init__(
        self, file: DataFile, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int
    ) -> None:
        self._file = file
        self._offset = offset
        self._read: weakref.ref[NDArray[Any]] | None = None
        self.dtype = dtype
        self.shape = shape

    def reshape(self, shape: tuple[int, ...]) -> Stored:
        return Stored(self._file, self.dtype, shape, self._offset)

    def read(self) -> NDArray[Any]:
        array = self._read() if self._read is not None else None
        if array is None:
            array = self.own()
            array.flags.writeable = False
            self._read = weakref.ref(array)
        return array

    def own(self) -> NDArray[Any]:
        array = np.empty(self.shape, _low_first(self.dtype))
        try:
            self._file.fill(array, self._offset)
        except OSError as error:
            raise ModelFileError(f"{self._file.path}: {error.strerror or error}") from None
        return array.astype(self.dtype, copy=False)


class Absent(Elements):
    """Elements that were left out where a model was saved; only their type is known."""

    __slots__ = ("_name",)

    def __init__(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._name = name
        self.dtype = dtype
        self.shape = shape

    def reshape(self, shape: tuple[int, ...]) -> Absent:
        return Absent(self._name, self.dtype, shape)

    def read(self) -> NDArray[Any]:
        raise ModelFileError(
            f"the elements of {self._name!r} were left out where the model was saved, since the "
            f"compiled programs hold them"
        )


@cache
def _low_first(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<")
