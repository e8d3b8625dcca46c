"""Memory that a device and its caller share, told by descriptor and offset."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator

import numpy as np

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.apis.nnrt.hdi.v1_0.types import SharedBuffer
from crosschip.drivers.protocol.memory import mapping, reserved
from crosschip.ir import Array, DeviceError

MOST = 2**32 - 1
"""The bytes that memory has at most: their number has 32 bits."""

_FIXED_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_CONSTANT = _FIXED_SIZE | fcntl.F_SEAL_WRITE


def allocate(length: int) -> SharedBuffer:
    """New memory, all of which is data, and which nobody can shrink.

    Raises:
        HdiError: there is not so much.
    """
    if not 0 < length <= MOST:
        raise HdiError(
            ReturnCode.HDF_ERR_INVALID_PARAM, f"memory of {length} bytes: must be 1 to {MOST}"
        )
    with _allocated(length) as descriptor:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _FIXED_SIZE)
        return SharedBuffer(descriptor, length, 0, length)


def holding(parts: list[tuple[int, Array]]) -> int:
    """Return the descriptor of new memory that holds arrays and that nobody can change any more.

    Args:
        parts: the arrays, each with the offset that it is to have.

    Raises:
        HdiError: there is not so much memory.
    """
    end = max((offset + array.nbytes for offset, array in parts), default=0)
    with _allocated(max(end, 1)) as descriptor:
        for offset, array in parts:
            _write(descriptor, offset, array)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _CONSTANT)
        return descriptor


def release(buffer: SharedBuffer) -> None:
    """Close the descriptor of memory; what has mapped it keeps it."""
    with contextlib.suppress(OSError):
        os.close(buffer.fd)


def elements(buffer: SharedBuffer, *, constant: bool = False) -> Array:
    """Return the data in a buffer, as bytes: the memory itself where nobody can take it away.

    Args:
        buffer: it.
        constant: whether it must stay as it is; it is copied where somebody could change it.

    Raises:
        HdiError: the memory is not as it is said.
    """
    seals = _checked(buffer)
    if not buffer.dataSize:
        return np.empty(0, np.uint8)
    needed = _CONSTANT if constant else _FIXED_SIZE
    if seals & needed == needed:
        return mapped(buffer, writable=False)[buffer.offset : buffer.offset + buffer.dataSize]
    held = np.empty(buffer.dataSize, np.uint8)
    try:
        count = os.preadv(buffer.fd, [held.data], buffer.offset)
    except OSError as error:
        raise HdiError(ReturnCode.HDF_ERR_IO, f"{buffer}: cannot be read: {error}") from None
    if count != buffer.dataSize:
        raise HdiError(ReturnCode.HDF_ERR_IO, f"{buffer}: has been shortened")
    return held


def mapped(buffer: SharedBuffer, *, writable: bool) -> Array:
    """Return all bytes of memory that nobody can shrink, themselves; they stay after its descriptor.

    Raises:
        HdiError: it cannot be mapped.
    """
    try:
        return np.frombuffer(mapping(buffer.fd, buffer.bufferSize, writable=writable), np.uint8)
    except DeviceError as error:
        raise HdiError(ReturnCode.HDF_ERR_IO, f"{buffer}: {error}") from None


def aligned(held: Array, alignment: int) -> Array:
    """Return the bytes themselves if they begin at a multiple of `alignment`, else a copy that does."""
    if not held.ctypes.data % alignment:
        return held
    room = np.empty(held.nbytes + alignment, np.uint8)
    start = -room.ctypes.data % alignment
    copy = room[start : start + held.nbytes]
    copy[:] = held
    return copy


def fill(buffer: SharedBuffer, array: Array) -> None:
    """Write an array to the beginning of a buffer's data, which it fits.

    Raises:
        HdiError: the memory is not as it is said.
    """
    _checked(buffer)
    try:
        _write(buffer.fd, buffer.offset, array)
    except OSError as error:
        raise HdiError(ReturnCode.HDF_ERR_IO, f"{buffer}: cannot be written: {error}") from None


def _checked(buffer: SharedBuffer) -> int:
    """Return the seals of memory that is as it is said; 0 where it can have none."""
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
def _allocated(length: int) -> Iterator[int]:
    """The descriptor of new memory, which is closed if something fails."""
    try:
        descriptor = reserved(length)
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
    left = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    while left:
        count = os.pwrite(descriptor, left, offset)
        left, offset = left[count:], offset + count
