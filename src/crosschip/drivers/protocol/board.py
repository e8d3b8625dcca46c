"""Shared memory in which a service records the runs that it is executing.

After a service has died, a client reads from this memory which runs may be the cause: those that
were executing, but not those that were queued.
"""

from __future__ import annotations

import numpy as np

NUMBERS = np.dtype(np.uint64)


def size_of(slots: int) -> int:
    """Return the size in bytes of a board with this many slots."""
    return slots * NUMBERS.itemsize


class Board:
    """The numbers of a client's executing runs, one slot per worker thread.

    Args:
        memory: memory of at least `size_of` bytes.
    """

    def __init__(self, memory: memoryview) -> None:
        self._numbers = np.frombuffer(memory, NUMBERS, len(memory) // NUMBERS.itemsize)

    def enter(self, slot: int, number: int) -> None:
        """Record that a run begins."""
        self._numbers[slot] = number

    def leave(self, slot: int) -> None:
        """Record that a slot's run has ended."""
        self._numbers[slot] = 0

    def running(self) -> frozenset[int]:
        """Return the numbers of the recorded runs."""
        return frozenset(int(number) for number in self._numbers if number)
