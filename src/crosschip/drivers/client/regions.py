"""Memory that a client shares with its service, used again once nobody has an array in it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from crosschip.drivers.client.connection import Connection
from crosschip.drivers.protocol import memory, messages
from crosschip.drivers.protocol.messages import SharedBuffer
from crosschip.ir import Array, DeviceError

_KEPT, _KEPT_BYTES = 16, 1 << 28
"""So many regions of one size, and bytes in them, are kept for the next runs."""


class _Region(NamedTuple):
    """A piece of shared memory: all of it, as messages name it, and as it lies here."""

    buffer: SharedBuffer
    mapping: memoryview


class Lease(np.ndarray[Any, Any]):
    """The bytes of a region that is in use: all arrays in it have the lease as their base.

    When the last of them is gone, the region is used again.

    Attributes:
        buffer: the region, as messages name it.
        owner: the regions that it is one of.
        lost: whether the service may yet write to it, for a run that nobody waits for any more.
    """

    buffer: SharedBuffer
    owner: Regions
    lost: bool
    _region: _Region | None = None

    @classmethod
    def of(cls, region: _Region, owner: Regions) -> Lease:
        """Return the lease of a region that nobody else has."""
        lease = cls((region.buffer.bufferSize,), np.uint8, region.mapping)
        lease._region = region
        lease.buffer = region.buffer
        lease.owner = owner
        lease.lost = False
        return lease

    def part(self, size: int) -> SharedBuffer:
        """Return the first bytes, as messages name them."""
        return SharedBuffer(self.buffer.fd, self.buffer.bufferSize, 0, size)

    def holding(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return a tensor at the beginning."""
        return np.ndarray(shape, dtype, self)

    def __del__(self) -> None:
        if self._region is not None and not self.lost:
            self.owner.put_back(self._region)


def lease_of(array: Array) -> Lease | None:
    """Return the lease of a region that an array begins with; `None` if there is none."""
    base = array.base
    if type(base) is not Lease:
        return None
    begins = array.__array_interface__["data"][0] == base.__array_interface__["data"][0]
    return base if begins else None


class Regions:
    """The regions of a connection.

    Args:
        connection: with whom they are shared.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._free: dict[int, list[_Region]] = {}
        self._excess: list[_Region] = []

    def take(self, size: int) -> Lease:
        """Return a region of at least so many bytes, whose elements may be anything.

        Raises:
            Died: the service is gone.
            DeviceError: there is not so much.
        """
        while self._excess:
            self._release()
        room = memory.rounded(size)
        free = self._free.get(room)
        if free:
            try:
                return Lease.of(free.pop(), self)
            except IndexError:  # another thread took the last one
                pass
        answer, descriptors = self._connection.ask_for(
            messages.Memory, lambda number: messages.Allocate(number, room)
        )
        return self.adopt(answer.buffer, descriptors)

    def adopt(self, buffer: SharedBuffer, descriptors: list[int]) -> Lease:
        """Memory that the service has allocated.

        Raises:
            DeviceError: the descriptor that came along is none of such memory.
        """
        try:
            if len(descriptors) != 1:
                raise DeviceError("the driver did not send the memory that it tells of")
            mapping = memory.mapped(descriptors[0], writable=True)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if len(mapping) != buffer.bufferSize:
            raise DeviceError("the driver sent other memory than it tells of")
        return Lease.of(_Region(buffer, mapping), self)

    def put_back(self, region: _Region) -> None:
        """Keep a region for whoever needs one next. Called at any moment, by any thread."""
        if not self._connection.alive:
            return
        size = region.buffer.bufferSize
        free = self._free.setdefault(size, [])
        if len(free) < _KEPT and (len(free) + 1) * size <= _KEPT_BYTES:
            free.append(region)
        else:
            # Nothing is sent from here: garbage is collected in the middle of anything.
            self._excess.append(region)

    def _release(self) -> None:
        try:
            number = self._excess.pop().buffer.fd
        except IndexError:  # another thread took the last one
            return
        self._connection.ask(messages.Done, lambda n: messages.Release(n, number))
