"""Shared memory of a client, reused after its last array has been deleted."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from crosschip.drivers.client.connection import Connection
from crosschip.drivers.protocol import memory, messages
from crosschip.drivers.protocol.messages import SharedBuffer
from crosschip.ir import Array, DeviceError

_MAX_FREE, _MAX_FREE_BYTES = 16, 1 << 28
"""The maximum number of free regions of one size, and their maximum bytes."""


class _Region(NamedTuple):
    """A region of shared memory: its protocol reference and its mapping."""

    buffer: SharedBuffer
    mapping: memoryview


class Lease(np.ndarray[Any, Any]):
    """The bytes of a region in use, the base of all arrays in it.

    When the last array is deleted, the region is reused.

    Attributes:
        buffer: the region's protocol reference.
        owner: the pool of the region.
        lost: whether the service may still write to it, for an abandoned run.
    """

    buffer: SharedBuffer
    owner: Regions
    lost: bool
    _region: _Region | None = None

    @classmethod
    def of(cls, region: _Region, owner: Regions) -> Lease:
        """Return the lease of a free region."""
        lease = cls((region.buffer.bufferSize,), np.uint8, region.mapping)
        lease._region = region
        lease.buffer = region.buffer
        lease.owner = owner
        lease.lost = False
        return lease

    def part(self, size: int) -> SharedBuffer:
        """Return the protocol reference of the first `size` bytes."""
        return SharedBuffer(self.buffer.fd, self.buffer.bufferSize, 0, size)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array at the region's beginning."""
        return np.ndarray(shape, dtype, self)

    def __del__(self) -> None:
        if self._region is not None and not self.lost:
            self.owner.put_back(self._region)


def lease_of(array: Array) -> Lease | None:
    """Return the lease at whose beginning an array lies; `None` if there is none."""
    base = array.base
    if type(base) is not Lease:
        return None
    same_address = array.__array_interface__["data"][0] == base.__array_interface__["data"][0]
    return base if same_address else None


class Regions:
    """The pool of a connection's regions.

    Args:
        connection: the connection.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._free: dict[int, list[_Region]] = {}
        self._excess: list[_Region] = []

    def take(self, size: int) -> Lease:
        """Return a region of at least `size` bytes with arbitrary content.

        Raises:
            Died: the service has died.
            DeviceError: memory is exhausted.
        """
        while self._excess:
            self._release()
        rounded_size = memory.round_size(size)
        free = self._free.get(rounded_size)
        if free:
            try:
                return Lease.of(free.pop(), self)
            except IndexError:  # another thread took the last one
                pass
        answer, descriptors = self._connection.ask_for(
            messages.Memory, lambda number: messages.Allocate(number, rounded_size)
        )
        return self.adopt(answer.buffer, descriptors)

    def adopt(self, buffer: SharedBuffer, descriptors: list[int]) -> Lease:
        """Map memory that the service has allocated.

        Raises:
            DeviceError: the descriptor does not match.
        """
        try:
            if len(descriptors) != 1:
                raise DeviceError("the driver did not send the announced memory")
            mapping = memory.map_shared(descriptors[0], writable=True)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if len(mapping) != buffer.bufferSize:
            raise DeviceError("the driver sent other memory than announced")
        return Lease.of(_Region(buffer, mapping), self)

    def put_back(self, region: _Region) -> None:
        """Return a region to the pool. Any thread may call it at any time."""
        if not self._connection.alive:
            return
        size = region.buffer.bufferSize
        free = self._free.setdefault(size, [])
        if len(free) < _MAX_FREE and (len(free) + 1) * size <= _MAX_FREE_BYTES:
            free.append(region)
        else:
            # Garbage collection may interrupt a send, so the release is sent later.
            self._excess.append(region)

    def _release(self) -> None:
        try:
            number = self._excess.pop().buffer.fd
        except IndexError:  # another thread took the last one
            return
        self._connection.ask(messages.Done, lambda n: messages.Release(n, number))
