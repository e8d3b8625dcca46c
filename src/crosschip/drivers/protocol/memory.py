"""Memory that processes share: anonymous files that cannot be cut off, mapped by both sides."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import stat
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from weakref import finalize

from crosschip.drivers.protocol.channel import close_all
from crosschip.ir import DeviceError
from crosschip.ir.closing import Closing

_NO_RESIZING = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""What makes sure that a mapping stays where it is: a file that shrinks takes the reader along."""

_PAGE = mmap.PAGESIZE
_LITTLE = 1 << 24
"""For so many bytes it is not asked how many are available."""


def allocate(size: int) -> int:
    """Return a descriptor of new memory that both sides may read and write.

    Args:
        size: bytes, at least one.

    Raises:
        DeviceError: there is not so much.
    """
    descriptor = reserved(size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _NO_RESIZING)
    return descriptor


class Sealed(Closing):
    """Memory that is written once, then shared with everybody and changed by nobody.

    Args:
        size: how many bytes count.
        descriptor: of memory that is sealed already; `None` to make new memory.

    Attributes:
        size: that.
        descriptor: of the memory; `close` closes it.

    Raises:
        DeviceError: there is not so much.
    """

    def __init__(self, size: int, descriptor: int | None = None) -> None:
        self.size = size
        self._closed = False
        if descriptor is None:
            descriptor = reserved(max(size, 1))
        self.descriptor = descriptor

    @classmethod
    def of(cls, content: bytes | memoryview) -> Sealed:
        """Memory with this content."""
        memory = cls(len(content))
        memory.fill(lambda view: view.__setitem__(slice(None), content))
        return memory

    @classmethod
    def received(cls, descriptors: Sequence[int], size: int) -> Sealed:
        """Memory whose descriptor came along with a message that tells its size.

        Raises:
            DeviceError: it is not sealed, or smaller.
        """
        if len(descriptors) != 1:
            close_all(descriptors)
            raise DeviceError("the driver did not send the memory that it tells of")
        memory = cls(size, descriptors[0])
        try:
            with mapped(memory.descriptor, writable=False) as mapping:
                if len(mapping) < size:
                    raise DeviceError("the driver sent less memory than it tells of")
        except BaseException:
            memory.close()
            raise
        return memory

    def fill(self, write: Callable[[memoryview], None]) -> None:
        """Have the memory written by a function that is given a view of it, and seal it."""
        with mmap.mmap(self.descriptor, max(self.size, 1)) as mapping, memoryview(mapping) as view:
            write(view[: self.size])
        seals = _NO_RESIZING | fcntl.F_SEAL_WRITE
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def read(self) -> bytes:
        """Return a copy of the bytes that count."""
        with mapped(self.descriptor, writable=False) as mapping:
            return bytes(mapping[: self.size])

    def close(self) -> None:
        """Forget the memory; those who have mapped it keep it."""
        if not self._closed:
            self._closed = True
            os.close(self.descriptor)


def read(descriptors: Sequence[int], size: int) -> bytes:
    """Return the bytes in memory whose descriptor came along with a message that tells its size.

    Raises:
        DeviceError: it is not sealed, or smaller.
    """
    with Sealed.received(descriptors, size) as sealed:
        return sealed.read()


def mapped(descriptor: int, *, writable: bool, most: int | None = None) -> memoryview:
    """Shared memory that somebody else may have made, once it is safe to use.

    It is there as long as anything is in it, and holds no descriptor meanwhile.

    Args:
        descriptor: of it; stays the caller's to close.
        writable: whether it is to be written to; otherwise nobody may be able to.
        most: how many bytes it may have.

    Raises:
        DeviceError: it is no memory that can be shared, can still be cut off, is too large, or can
            be written to where it must not.
    """
    try:
        state = os.fstat(descriptor)
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    except OSError:
        raise DeviceError("a descriptor is of no memory that can be shared") from None
    needed = _NO_RESIZING if writable else _NO_RESIZING | fcntl.F_SEAL_WRITE
    if not stat.S_ISREG(state.st_mode) or seals & needed != needed:
        raise DeviceError(
            "shared memory must be sealed: nobody may shrink it"
            + ("" if writable else " or write to it")
        )
    if not state.st_size or (most is not None and state.st_size > most):
        raise DeviceError(f"shared memory has {state.st_size} bytes, and at most {most} are left")
    return mapping(descriptor, state.st_size, writable=writable)


def reserved(size: int) -> int:
    """Return a descriptor of memory that is there: to write into it cannot fail any more.

    Raises:
        DeviceError: there is not so much.
    """
    if size > _LITTLE and size > (available := _available()):
        # The system would take it from whoever it likes, and end them.
        raise DeviceError(f"there is no memory of {size} bytes: {available} are available")
    try:
        descriptor = os.memfd_create("crosschip", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError as error:
        raise DeviceError(f"there is no memory of {size} bytes: {error.strerror}") from None
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        os.close(descriptor)
        raise DeviceError(f"there is no memory of {size} bytes: {error.strerror}") from None
    return descriptor


def _available() -> int:
    """Return the bytes of memory that may be taken without taking them from somebody."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * _PAGE


def mapping(descriptor: int, size: int, *, writable: bool) -> memoryview:
    """Return the first bytes of memory that nobody can cut off; without a descriptor, as Python's has one.

    Args:
        descriptor: of it; stays the caller's to close.
        size: how many bytes.
        writable: whether it is to be written to.

    Raises:
        DeviceError: it cannot be mapped.
    """
    # Linux before 6.7 maps what is sealed against writing only as if it were nobody else's.
    access, flags = mmap.PROT_READ, mmap.MAP_PRIVATE
    if writable:
        access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED
    address = _map(None, size, access, flags, descriptor, 0)
    if address in (None, _FAILED):
        raise DeviceError(f"shared memory cannot be mapped: {os.strerror(ctypes.get_errno())}")
    elements = (ctypes.c_uint8 * size).from_address(address)
    finalize(elements, _unmap, address, size).atexit = False
    view = memoryview(elements).cast("B")
    return view if writable else view.toreadonly()


_C = ctypes.CDLL(None, use_errno=True)
_map, _unmap = _C.mmap, _C.munmap
_map.restype = ctypes.c_void_p
_map.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
)  # fmt: skip
_unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


@lru_cache(maxsize=1024)
def rounded(size: int) -> int:
    """Return the size of memory to take for so many bytes: of whole pages, and few different ones."""
    pages = max(1, -(-size // _PAGE))
    step = 1 << max(0, pages.bit_length() - 3)
    return -(-pages // step) * step * _PAGE
