"""Counting of the copies on the way through a compiled model."""

from __future__ import annotations

import threading
from enum import Enum

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass


class Copied(Enum):
    """The occasions on which the runtime may copy tensors."""

    INPUT = "input"
    """An input is in a layout, byte order or place in memory that the device cannot read."""
    BETWEEN = "between"
    """A segment made what the next one cannot read where it is, in another device's memory, say; or
    control flow hands on what it was given, a constant, or a part of a tensor along another axis
    than the first.
    """
    OUTPUT = "output"
    """An output is an input or a constant, is in a device's memory, or goes into an array of the
    caller's that its device could not write.
    """


@dataclass(frozen=True, slots=True)
class Tally:
    """The number and size of copies.

    Attributes:
        count: the number of copies.
        bytes: their total size; text and values other than tensors count as 0.
    """

    count: int = 0
    bytes: int = 0


class Copies:
    """The copies so far, by occasion; thread-safe.

    There are none if inputs are C-contiguous and all devices share memory.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The number and the bytes: runs add to them, and few look.
        self._tallies = {place: [0, 0] for place in Copied}

    def add(self, place: Copied, array: Array) -> None:
        """Count a copy of an array."""
        size = int(getattr(array, "nbytes", 0))
        with self._lock:
            tally = self._tallies[place]
            tally[0] += 1
            tally[1] += size

    def __getitem__(self, place: Copied) -> Tally:
        with self._lock:
            return Tally(*self._tallies[place])

    @property
    def count(self) -> int:
        """Return the number of copies on all occasions."""
        return sum(self[place].count for place in Copied)

    def __repr__(self) -> str:
        counts = (f"{p.value} {self[p].count} ({self[p].bytes} bytes)" for p in Copied)
        return f"<Copies: {', '.join(counts)}>"
