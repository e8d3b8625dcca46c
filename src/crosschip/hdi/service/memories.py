"""The memory that a client and the service share, as the service has it."""

from __future__ import annotations

import os
from math import prod
from mmap import mmap

import numpy as np

from crosschip.hdi.service.limits import Exceeded, Limits
from crosschip.hdi.wire import memory
from crosschip.hdi.wire.channel import Broken
from crosschip.hdi.wire.messages import SharedBuffer
from crosschip.ir import Array, ElementType

_ALIGNMENT = 64
"""Elements begin at multiples of so many bytes, which is enough for every engine."""


class Memories:
    """Mapped memory by number; what a client says of it is checked against what there is.

    Args:
        limits: how much there may be.

    Attributes:
        bytes: how much there is.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._mapped: dict[int, Array] = {}
        self._arrays: dict[tuple[SharedBuffer, ElementType, tuple[int, ...]], Array] = {}
        self._count = 0
        self.bytes = 0

    def allocate(self, size: int) -> tuple[SharedBuffer, int]:
        """New memory, with a descriptor of it that the caller closes.

        Raises:
            Exceeded: the client has too much already.
            DeviceError: there is not so much.
        """
        self._check(size)
        descriptor = memory.allocate(size)
        try:
            return self._add(memory.mapped(descriptor, writable=True)), descriptor
        except BaseException:
            os.close(descriptor)
            raise

    def take(self, descriptor: int) -> Array:
        """The bytes of memory of the client's, which nobody may be able to write to any more.

        They count until `give_back`.

        Raises:
            DeviceError: it is no such memory, or too large.
        """
        left = self._limits.memory - self.bytes
        taken = np.frombuffer(memory.mapped(descriptor, writable=False, most=left), np.uint8)
        self.bytes += taken.nbytes
        return taken

    def give_back(self, size: int) -> None:
        """Memory of so many bytes that was taken is not in use any more."""
        self.bytes -= size

    def release(self, number: int) -> None:
        """Forget memory; what lies in it stays as long as it is in use.

        Raises:
            Broken: there is none of that number.
        """
        if number not in self._mapped:
            raise Broken(f"there is no memory {number}")
        self.bytes -= self._mapped.pop(number).nbytes
        self._arrays.clear()

    def bytes_in(self, part: SharedBuffer) -> Array:
        """The bytes of a part of memory.

        Raises:
            Broken: there is no such part.
        """
        whole = self._mapped.get(part.fd)
        if whole is None:
            raise Broken(f"there is no memory {part.fd}")
        if part.bufferSize != whole.nbytes:
            raise Broken(f"memory {part.fd} has {whole.nbytes} bytes, not {part.bufferSize}")
        end = part.offset + part.dataSize
        if part.offset < 0 or part.dataSize < 0 or end > whole.nbytes:
            raise Broken(f"memory {part.fd} has no bytes {part.offset} to {end}")
        return whole[part.offset : end]

    def array(self, part: SharedBuffer, element_type: ElementType, shape: tuple[int, ...]) -> Array:
        """The elements of a tensor in a part of memory.

        Raises:
            Broken: the part has another size than they, or does not begin where elements may.
        """
        key = part, element_type, shape
        found = self._arrays.get(key)
        if found is None:
            found = self._checked(part, element_type, shape)
            if len(self._arrays) >= self._limits.mappings:
                self._arrays.clear()
            self._arrays[key] = found
        return found

    def _checked(
        self, part: SharedBuffer, element_type: ElementType, shape: tuple[int, ...]
    ) -> Array:
        dtype = element_type.dtype
        if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != part.dataSize:
            raise Broken(
                f"{element_type}{list(shape)} does not take {part.dataSize} bytes, as a part of "
                f"memory {part.fd} has"
            )
        if part.offset % _ALIGNMENT:
            raise Broken(f"offset {part.offset} is no multiple of {_ALIGNMENT}")
        elements: Array = self.bytes_in(part).view(dtype).reshape(shape)
        return elements

    def clear(self) -> None:
        """Forget all of it."""
        self._mapped.clear()
        self._arrays.clear()
        self.bytes = 0

    def _check(self, size: int) -> None:
        if not 0 < size <= self._limits.memory - self.bytes:
            raise Exceeded(
                f"{size} bytes are asked for, and {self._limits.memory - self.bytes} are left of "
                f"the {self._limits.memory} that a client may have"
            )
        if len(self._mapped) >= self._limits.mappings:
            raise Exceeded(f"a client may share {self._limits.mappings} pieces of memory")

    def _add(self, mapping: mmap) -> SharedBuffer:
        size = len(mapping)
        self._count += 1
        self._mapped[self._count] = np.frombuffer(mapping, np.uint8)
        self.bytes += size
        return SharedBuffer(self._count, size, 0, size)
