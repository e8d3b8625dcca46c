"""Shared memory: anonymous files that cannot shrink, mapped by both processes."""

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

_FIXED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""The seals that keep mappings valid: reading a mapping of a file that shrank raises SIGBUS."""

_PAGE = mmap.PAGESIZE
_UNCHECKED_BYTES = 1 << 24
"""Up to this size, memory is allocated without checking how much is available."""


def allocate(size: int) -> int:
    """Allocate memory that both processes may read and write; return its descriptor.

    Args:
        size: the number of bytes, at least one.

    Raises:
        DeviceError: memory is exhausted.
    """
    descriptor = reserve(size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _FIXED_SIZE)
    return descriptor


class Sealed(Closing):
    """Memory that is written once, then sealed and shared read-only.

    Args:
        size: the number of bytes in use.
        descriptor: the descriptor of sealed memory; `None` to allocate memory.

    Attributes:
        size: that.
        descriptor: of the memory; `close` closes it.

    Raises:
        DeviceError: memory is exhausted.
    """

    def __init__(self, size: int, descriptor: int | None = None) -> None:
        self.size = size
        self._closed = False
        if descriptor is None:
            descriptor = reserve(max(size, 1))
        self.descriptor = descriptor

    @classmethod
    def of(cls, content: bytes | memoryview) -> Sealed:
        """Create memory with this content."""
        memory = cls(len(content))
        memory.fill(lambda view: view.__setitem__(slice(None), content))
        return memory

    @classmethod
    def from_message(cls, descriptors: Sequence[int], size: int) -> Sealed:
        """Adopt memory whose descriptor arrived with a message that states its size.

        Raises:
            DeviceError: it is not sealed, or too small.
        """
        if len(descriptors) != 1:
            close_all(descriptors)
            raise DeviceError("the driver did not send the announced memory")
        memory = cls(size, descriptors[0])
        try:
            with map_shared(memory.descriptor, writable=False) as mapping:
                if len(mapping) < size:
                    raise DeviceError("the driver sent less memory than announced")
        except BaseException:
            memory.close()
            raise
        return memory

    def fill(self, write: Callable[[memoryview], None]) -> None:
        """Call a function with a writable view of the memory, then seal it."""
        with mmap.mmap(self.descriptor, max(self.size, 1)) as mapping, memoryview(mapping) as view:
            write(view[: self.size])
        seals = _FIXED_SIZE | fcntl.F_SEAL_WRITE
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def read(self) -> bytes:
        """Return a copy of the content."""
        with map_shared(self.descriptor, writable=False) as mapping:
            return bytes(mapping[: self.size])

    def close(self) -> None:
        """Close the descriptor; existing mappings remain valid."""
        if not self._closed:
            self._closed = True
            os.close(self.descriptor)


def read(descriptors: Sequence[int], size: int) -> bytes:
    """Return the content of memory whose descriptor arrived with a message.

    Raises:
        DeviceError: it is not sealed, or too small.
    """
    with Sealed.from_message(descriptors, size) as sealed:
        return sealed.read()


def map_shared(descriptor: int, *, writable: bool, max_bytes: int | None = None) -> memoryview:
    """Map shared memory that another process may have created, after validating it.

    The mapping lives as long as a view of it, and keeps no descriptor.

    Args:
        descriptor: the memory's descriptor, which the caller closes.
        writable: whether to map it for writing; if not, it must be sealed against writes.
        max_bytes: the maximum number of bytes.

    Raises:
        DeviceError: it is no shared memory, can shrink, is too large, or lacks a required seal.
    """
    try:
        state = os.fstat(descriptor)
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    except OSError:
        raise DeviceError("a descriptor is of no memory that can be shared") from None
    required = _FIXED_SIZE if writable else _FIXED_SIZE | fcntl.F_SEAL_WRITE
    if not stat.S_ISREG(state.st_mode) or seals & required != required:
        raise DeviceError(
            "shared memory must be sealed: nobody may shrink it"
            + ("" if writable else " or write to it")
        )
    if not state.st_size or (max_bytes is not None and state.st_size > max_bytes):
        raise DeviceError(
            f"shared memory has {state.st_size} bytes, and at most {max_bytes} are left"
        )
    return map_memory(descriptor, state.st_size, writable=writable)


def reserve(size: int) -> int:
    """Allocate memory that is physically backed, so that writes to it cannot fail.

    Raises:
        DeviceError: memory is exhausted.
    """
    if size > _UNCHECKED_BYTES and size > (available := _available()):
        # Otherwise the kernel's OOM killer would end arbitrary processes.
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
    """Return the number of bytes of available memory."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * _PAGE


def map_memory(descriptor: int, size: int, *, writable: bool) -> memoryview:
    """Map the first bytes of memory that cannot shrink.

    Unlike Python's `mmap`, the mapping keeps no descriptor.

    Args:
        descriptor: the memory's descriptor, which the caller closes.
        size: the number of bytes.
        writable: whether to map it for writing.

    Raises:
        DeviceError: it cannot be mapped.
    """
    # Linux before 6.7 maps write-sealed memory only as MAP_PRIVATE.
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
def round_size(size: int) -> int:
    """Round a size up to whole pages and to one of few allocation sizes."""
    pages = max(1, -(-size // _PAGE))
    step = 1 << max(0, pages.bit_length() - 3)
    return -(-pages // step) * step * _PAGE
