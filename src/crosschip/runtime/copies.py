"""Counters of the copies in runs of a compiled model."""

from __future__ import annotations

import threading
from enum import Enum

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass


class Copied(Enum):
    """The kinds of copies that the runtime makes: of inputs, between segments, of outputs."""

    INPUT = "input"
    """An input has a layout, byte order or alignment that the device cannot read."""
    BETWEEN = "between"
    """A segment reads a tensor from another device's memory; or control flow returns an input, a
    constant, or a slice along another axis than the first.
    """
    OUTPUT = "output"
    """An output is an input or a constant, is in device memory, or is written into an array of the
    caller that the device cannot write to.
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
    """The copies so far, by kind; thread-safe.

    There are none if inputs are C-contiguous and all devices share memory.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies = {kind: [0, 0] for kind in Copied}  # count and bytes

    def add(self, kind: Copied, array: Array) -> None:
        """Count a copy of an array."""
        size = int(getattr(array, "nbytes", 0))
        with self._lock:
            tally = self._tallies[kind]
            tally[0] += 1
            tally[1] += size

    def __getitem__(self, kind: Copied) -> Tally:
        with self._lock:
            return Tally(*self._tallies[kind])

    @property
    def count(self) -> int:
        """The number of copies of all kinds."""
        return sum(self[kind].count for kind in Copied)

    def __repr__(self) -> str:
        counts = (f"{p.value} {self[p].count} ({self[p].bytes} bytes)" for p in Copied)
        return f"<Copies: {', '.join(counts)}>"
