"""The memory that a client and the service share, as the service has it."""

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
"""Elements begin at multiples of so many bytes, which is enough for every engine."""

_KEPT = 4096
"""So many tensors, whose places have been checked, are kept for the next runs."""


class Memories:
    """Mapped memory by number; what a client says of it is checked against what there is.

    Args:
        accounts: how much there may be.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._mapped: dict[int, Array] = {}
        self._arrays: dict[tuple[SharedBuffer, ElementType, tuple[int, ...]], Array] = {}
        self._numbers = count(1)

    def allocate(self, size: int) -> tuple[SharedBuffer, int]:
        """New memory, with a descriptor of it that the caller closes. It counts until it is gone.

        Raises:
            Exceeded: the client has too much already.
            Broken: it is nothing.
            DeviceError: there is not so much.
        """
        if size <= 0:
            raise ProtocolError("memory of no bytes is asked for")
        with ExitStack() as held:
            self._accounts.mappings.take()
            held.callback(self._accounts.mappings.release)
            self._accounts.memory.take(size)
            held.callback(self._accounts.memory.release, size)
            descriptor = memory.allocate(size)
            held.callback(os.close, descriptor)
            whole = np.frombuffer(memory.mapped(descriptor, writable=True), np.uint8)
            held.pop_all()
        finalize(whole, _gone, self._accounts, size).atexit = False
        number = next(self._numbers)
        self._mapped[number] = whole
        return SharedBuffer(number, size, 0, size), descriptor

    def take(self, descriptors: Sequence[int], held: ExitStack) -> list[Array]:
        """Return the bytes of memory of the client's, which nobody may be able to write to any more.

        Args:
            descriptors: of each piece of memory.
            held: gives them back, when it is closed: as long they count.

        Raises:
            DeviceError: it is no such memory, or too large.
        """
        arrays = []
        for descriptor in descriptors:
            most = self._accounts.memory.left
            mapping = memory.mapped(descriptor, writable=False, most=most)
            self._accounts.memory.take(len(mapping))
            held.callback(self._accounts.memory.release, len(mapping))
            arrays.append(np.frombuffer(mapping, np.uint8))
        return arrays

    def release(self, number: int) -> None:
        """Forget memory; what lies in it stays, and counts, as long as it is in use.

        Raises:
            Broken: there is none of that number.
        """
        if self._mapped.pop(number, None) is None:
            raise ProtocolError(f"there is no memory {number}")
        self._arrays.clear()

    def bytes_in(self, part: SharedBuffer) -> Array:
        """Return the bytes of a part of memory.

        Raises:
            Broken: there is no such part.
        """
        whole = self._mapped.get(part.fd)
        if whole is None:
            raise ProtocolError(f"there is no memory {part.fd}")
        if part.bufferSize != whole.nbytes:
            raise ProtocolError(f"memory {part.fd} has {whole.nbytes} bytes, not {part.bufferSize}")
        end = part.offset + part.dataSize
        if part.offset < 0 or part.dataSize < 0 or end > whole.nbytes:
            raise ProtocolError(f"memory {part.fd} has no bytes {part.offset} to {end}")
        return whole[part.offset : end]

    def array(self, part: SharedBuffer, element_type: ElementType, shape: tuple[int, ...]) -> Array:
        """Return the elements of a tensor in a part of memory.

        Raises:
            Broken: the part has another size than they, or does not begin where elements may.
        """
        key = part, element_type, shape
        array = self._arrays.get(key)
        if array is None:
            array = self._checked(part, element_type, shape)
            if len(self._arrays) >= _KEPT:
                self._arrays.clear()
            self._arrays[key] = array
        return array

    def clear(self) -> None:
        """Forget all of it."""
        self._mapped.clear()
        self._arrays.clear()

    def _checked(
        self, part: SharedBuffer, element_type: ElementType, shape: tuple[int, ...]
    ) -> Array:
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
        except ValueError as error:  # without elements, but too large in other axes
            raise ProtocolError(f"there is no tensor of shape {list(shape)}: {error}") from None
        return elements


def _gone(accounts: Accounts, size: int) -> None:
    accounts.memory.release(size)
    accounts.mappings.release()
