"""The shared memory of a client, on the service's side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from math import prod
from weakref import finalize

import numpy as np

from crosschip.drivers.protocol import memory
from crosschip.drivers.protocol.channel import ProtocolError
from crosschip.drivers.protocol.messages import SharedBuffer
from crosschip.drivers.service.limits import Accounts
from crosschip.ir import Array, ElementType

_ALIGNMENT = 64
"""The alignment of elements in bytes, sufficient for every engine."""

_MAX_CACHED = 4096
"""The maximum number of validated tensor views that are cached."""


class Memories:
    """Mapped memory by number; validates the client's references to it.

    Args:
        accounts: the client's accounts.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._mapped: dict[int, Array] = {}
        self._arrays: dict[tuple[SharedBuffer, ElementType, tuple[int, ...]], Array] = {}
        self._numbers = count(1)

    def allocate(self, size: int) -> tuple[SharedBuffer, int]:
        """Allocate memory; return it with its descriptor, which the caller closes.

        It is accounted until it is unmapped.

        Raises:
            Exceeded: a limit is exceeded.
            ProtocolError: the size is 0.
            DeviceError: memory is exhausted.
        """
        if size <= 0:
            raise ProtocolError("memory of no bytes is asked for")
        with ExitStack() as resources:
            self._accounts.mappings.take()
            resources.callback(self._accounts.mappings.release)
            self._accounts.memory.take(size)
            resources.callback(self._accounts.memory.release, size)
            descriptor = memory.allocate(size)
            resources.callback(os.close, descriptor)
            mapped = np.frombuffer(memory.map_shared(descriptor, writable=True), np.uint8)
            resources.pop_all()
        finalize(mapped, _release, self._accounts, size).atexit = False
        number = next(self._numbers)
        self._mapped[number] = mapped
        return SharedBuffer(number, size, 0, size), descriptor

    def take(self, descriptors: Sequence[int], resources: ExitStack) -> list[Array]:
        """Map memory of the client, sealed against writes, and return its bytes.

        Args:
            descriptors: the memory's descriptors.
            resources: the stack that releases the accounted bytes when closed.

        Raises:
            DeviceError: the memory is not sealed, or too large.
        """
        arrays = []
        for descriptor in descriptors:
            max_bytes = self._accounts.memory.remaining
            mapping = memory.map_shared(descriptor, writable=False, max_bytes=max_bytes)
            self._accounts.memory.take(len(mapping))
            resources.callback(self._accounts.memory.release, len(mapping))
            arrays.append(np.frombuffer(mapping, np.uint8))
        return arrays

    def release(self, number: int) -> None:
        """Forget memory; views in use keep it mapped and accounted.

        Raises:
            ProtocolError: no memory has this number.
        """
        if self._mapped.pop(number, None) is None:
            raise ProtocolError(f"there is no memory {number}")
        self._arrays.clear()

    def bytes_in(self, part: SharedBuffer) -> Array:
        """Return the bytes of a range of memory.

        Raises:
            ProtocolError: the range does not exist.
        """
        mapped = self._mapped.get(part.fd)
        if mapped is None:
            raise ProtocolError(f"there is no memory {part.fd}")
        if part.bufferSize != mapped.nbytes:
            raise ProtocolError(
                f"memory {part.fd} has {mapped.nbytes} bytes, not {part.bufferSize}"
            )
        end = part.offset + part.dataSize
        if part.offset < 0 or part.dataSize < 0 or end > mapped.nbytes:
            raise ProtocolError(f"memory {part.fd} has no bytes {part.offset} to {end}")
        return mapped[part.offset : end]

    def array(self, part: SharedBuffer, element_type: ElementType, shape: tuple[int, ...]) -> Array:
        """Return the elements of a tensor in a range of memory.

        Raises:
            ProtocolError: the range has another size, or is not aligned.
        """
        key = part, element_type, shape
        array = self._arrays.get(key)
        if array is None:
            array = self._view(part, element_type, shape)
            if len(self._arrays) >= _MAX_CACHED:
                self._arrays.clear()
            self._arrays[key] = array
        return array

    def clear(self) -> None:
        """Forget all memory."""
        self._mapped.clear()
        self._arrays.clear()

    def _view(self, part: SharedBuffer, element_type: ElementType, shape: tuple[int, ...]) -> Array:
        dtype = element_type.dtype
        if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != part.dataSize:
            raise ProtocolError(
                f"{element_type}{list(shape)} does not take {part.dataSize} bytes, as a part of "
                f"memory {part.fd} has"
            )
        if part.offset % _ALIGNMENT:
            raise ProtocolError(f"offset {part.offset} is no multiple of {_ALIGNMENT}")
        try:
            elements: Array = self.bytes_in(part).view(dtype).reshape(shape)
        except ValueError as error:  # an empty tensor with a huge axis
            raise ProtocolError(f"there is no tensor of shape {list(shape)}: {error}") from None
        return elements


def _release(accounts: Accounts, size: int) -> None:
    accounts.memory.release(size)
    accounts.mappings.release()
