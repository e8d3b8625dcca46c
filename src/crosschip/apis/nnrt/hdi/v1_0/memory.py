"""Memory that a device and its caller share by file descriptor."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator

import numpy as np

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.apis.nnrt.hdi.v1_0.types import SharedBuffer
from crosschip.drivers.protocol.memory import map_memory, reserve
from crosschip.ir import Array, DeviceError

MAX_BYTES = 2**32 - 1
"""The maximum number of bytes of a buffer, a 32-bit number."""

_FIXED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_CONSTANT = _FIXED_SIZE | fcntl.F_SEAL_WRITE


def allocate(length: int) -> SharedBuffer:
    """Allocate memory of fixed size, all of which is data.

    Raises:
        HdiError: memory is exhausted, or the length is invalid.
    """
    if not 0 < length <= MAX_BYTES:
        raise HdiError(
            ReturnCode.HDF_ERR_INVALID_PARAM, f"memory of {length} bytes: must be 1 to {MAX_BYTES}"
        )
    with _new_memory(length) as descriptor:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _FIXED_SIZE)
        return SharedBuffer(descriptor, length, 0, length)


def create_constant(parts: list[tuple[int, Array]]) -> int:
    """Create sealed, constant memory with the contents of arrays; return its descriptor.

    Args:
        parts: the arrays, with their offsets.

    Raises:
        HdiError: memory is exhausted.
    """
    end = max((offset + array.nbytes for offset, array in parts), default=0)
    with _new_memory(max(end, 1)) as descriptor:
        for offset, array in parts:
            _write(descriptor, offset, array)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _CONSTANT)
        return descriptor


def release(buffer: SharedBuffer) -> None:
    """Close a buffer's descriptor; existing mappings remain valid."""
    with contextlib.suppress(OSError):
        os.close(buffer.fd)


def read(buffer: SharedBuffer, *, constant: bool = False) -> Array:
    """Return the bytes of a buffer's data: the mapped memory if its seals permit, else a copy.

    Args:
        buffer: the buffer.
        constant: whether the bytes must never change; a copy is made unless the memory is
            sealed against writes.

    Raises:
        HdiError: the buffer is invalid.
    """
    seals = _check(buffer)
    if not buffer.dataSize:
        return np.empty(0, np.uint8)
    required = _CONSTANT if constant else _FIXED_SIZE
    if seals & required == required:
        return map_buffer(buffer, writable=False)[buffer.offset : buffer.offset + buffer.dataSize]
    copy = np.empty(buffer.dataSize, np.uint8)
    try:
        count = os.preadv(buffer.fd, [copy.data], buffer.offset)
    except OSError as error:
        raise HdiError(ReturnCode.HDF_ERR_IO, f"{buffer}: cannot be read: {error}") from None
    if count != buffer.dataSize:
        raise HdiError(ReturnCode.HDF_ERR_IO, f"{buffer}: has been shortened")
    return copy


def map_buffer(buffer: SharedBuffer, *, writable: bool) -> Array:
    """Map a whole buffer that cannot shrink; the mapping outlives the descriptor.

    Raises:
        HdiError: it cannot be mapped.
    """
    try:
        return np.frombuffer(map_memory(buffer.fd, buffer.bufferSize, writable=writable), np.uint8)
    except DeviceError as error:
        raise HdiError(ReturnCode.HDF_ERR_IO, f"{buffer}: {error}") from None


def align(content: Array, alignment: int) -> Array:
    """Return the bytes, copied if they do not start at a multiple of `alignment`."""
    if not content.ctypes.data % alignment:
        return content
    padded = np.empty(content.nbytes + alignment, np.uint8)
    start = -padded.ctypes.data % alignment
    copy = padded[start : start + content.nbytes]
    copy[:] = content
    return copy


def fill(buffer: SharedBuffer, array: Array) -> None:
    """Write an array to the beginning of a buffer's data.

    Raises:
        HdiError: the buffer is invalid.
    """
    _check(buffer)
    try:
        _write(buffer.fd, buffer.offset, array)
    except OSError as error:
        raise HdiError(ReturnCode.HDF_ERR_IO, f"{buffer}: cannot be written: {error}") from None


def _check(buffer: SharedBuffer) -> int:
    """Check a buffer; return its memory's seals, 0 if it cannot have any."""
    if buffer.offset + buffer.dataSize > buffer.bufferSize:
        raise HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, f"{buffer}: the data is not in it")
    try:
        state = os.fstat(buffer.fd)
    except (OSError, OverflowError):
        raise HdiError(ReturnCode.HDF_ERR_BAD_FD, f"{buffer}: fd is no descriptor") from None
    if not stat.S_ISREG(state.st_mode):
        raise HdiError(ReturnCode.HDF_ERR_BAD_FD, f"{buffer}: fd is not that of memory")
    if state.st_size < buffer.bufferSize:
        raise HdiError(
            ReturnCode.HDF_ERR_INVALID_PARAM, f"{buffer}: there are only {state.st_size} bytes"
        )
    try:
        return fcntl.fcntl(buffer.fd, fcntl.F_GET_SEALS)
    except OSError:
        return 0


@contextlib.contextmanager
def _new_memory(length: int) -> Iterator[int]:
    """Yield the descriptor of new memory; close it on errors."""
    try:
        descriptor = reserve(length)
    except DeviceError as error:
        raise HdiError(ReturnCode.HDF_ERR_MALLOC_FAIL, str(error)) from None
    try:
        yield descriptor
    except OSError as error:
        os.close(descriptor)
        raise HdiError(
            ReturnCode.HDF_ERR_MALLOC_FAIL, f"no memory of {length} bytes: {error.strerror}"
        ) from None
    except BaseException:
        os.close(descriptor)
        raise


def _write(descriptor: int, offset: int, array: Array) -> None:
    remaining = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    while remaining:
        count = os.pwrite(descriptor, remaining, offset)
        remaining, offset = remaining[count:], offset + count
