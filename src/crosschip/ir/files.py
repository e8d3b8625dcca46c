"""Files that are read on demand, and constants whose elements are stored in them.

Only regular files are opened, because opening a pipe or a terminal can block. Files are not mapped
into memory, so that truncating a file in use raises an error instead of killing the process.
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
from crosschip.ir.file_queries import StrPath, note_file

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_FLAGS = getattr(os, "O_NONBLOCK", 0)
"""Open a pipe without waiting for its other end."""

_WRITE_FLAGS = (
    _FLAGS
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)

_NOT_REGULAR = "is not a regular file"

_SMALL = 2**15
"""Up to this number of bytes are read at once, since a later read would take longer."""

_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER = 1024
"""The signature of a Git LFS pointer file, and the largest size of one in bytes."""

_WINDOW = 2**14
"""The smallest number of bytes that a window reads."""


def open_regular(path: StrPath, *, follow: bool = True) -> FileIO:
    """Open a regular file for unbuffered reading.

    Args:
        path: the file.
        follow: follow a symbolic link at the path; otherwise it is an error.

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
    """Return the last bytes of a regular file that is not a symbolic link.

    Args:
        path: the file.
        most: the largest number of bytes to read.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with open_regular(path, follow=False) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def open_own(path: StrPath, flags: int, mode: int = 0o600) -> int:
    """Open a regular file of this user for writing or locking; return the descriptor.

    Another user with write access to the folder could have planted a link to a file that must not
    change, or a pipe that blocks. Links are not followed, pipes not waited for, and neither is
    changed.

    Args:
        path: the file.
        flags: flags of `os.open` without `O_TRUNC`, which would precede the checks; use
            `os.ftruncate`.
        mode: permissions of a new file.

    Raises:
        OSError: it cannot be opened, is not a regular file, has several hard links, or belongs to
            another user.
    """
    try:
        descriptor = os.open(path, flags | _WRITE_FLAGS, mode)
    except OSError as error:
        # A symbolic link, or a pipe without a reader.
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
    """Bytes that a model is loaded from.

    Attributes:
        size: the number of bytes.
    """

    size: int

    @abstractmethod
    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes from offset `begin` up to `end`.

        Raises:
            OSError: they cannot be read, or the file has changed.
        """

    @abstractmethod
    def elements(self, dtype: np.dtype[Any], count: int, offset: int) -> NDArray[Any] | Stored:
        """Return `count` little-endian elements from a byte offset on."""


class Window:
    """Sliding window over a source, which buffers the bytes around the last access."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._begin = 0
        self._held = b""

    def at(self, offset: int, count: int) -> tuple[bytes, int]:
        """Return buffered bytes, and the index in them of the `count` bytes from an offset on.

        There are fewer than `count` bytes only at the end of the source.

        Raises:
            OSError: they cannot be read, or the file has changed.
        """
        index = offset - self._begin
        if not 0 <= index <= len(self._held) - count:
            self._begin, index = offset, 0
            end = min(offset + max(count, _WINDOW), self.source.size)
            self._held = self.source.read(offset, end)
        return self._held, index

    def elements(self, dtype: np.dtype[Any], count: int, offset: int) -> NDArray[Any] | Stored:
        """Return `count` little-endian elements from an offset on; small arrays are copied.

        Raises:
            OSError: they cannot be read, or the file has changed.
        """
        size = count * dtype.itemsize
        if size > _SMALL:
            return self.source.elements(dtype, count, offset)
        buffered, index = self.at(offset, size)
        return Held(buffered[index : index + size]).elements(dtype, count, 0)


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
    """Regular file that stays open as long as it is referenced.

    The file may be moved, removed or replaced. Once its modification time or size has
    changed, reading from it raises an error.

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
        """Read the elements of an array from a byte offset on.

        Raises:
            OSError: they cannot be read, or the file has changed.
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
    """Elements in a file, read on demand and cached while they are referenced.

    Args:
        file: the file with the elements, in little-endian order.
        dtype: the element type.
        shape: the shape of the array.
        offset: the byte offset of the first element.
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
            array = self.copy()
            array.flags.writeable = False
            self._read = weakref.ref(array)
        return array

    def copy(self) -> NDArray[Any]:
        array = np.empty(self.shape, _low_first(self.dtype))
        try:
            self._file.fill(array, self._offset)
        except OSError as error:
            raise ModelFileError(f"{self._file.path}: {error.strerror or error}") from None
        return array.astype(self.dtype, copy=False)


class Absent(Elements):
    """Elements that were omitted when a model was saved; only their type is known."""

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
