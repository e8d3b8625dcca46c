"""The board: memory in which a service notes which runs it is at, for whoever outlives it.

A client reads it after its service has died, to know which of its runs may be to blame: those that
were under way, and no others that only waited.
"""

from __future__ import annotations

import numpy as np

NUMBERS = np.dtype(np.uint64)


def size_of(places: int) -> int:
    """Return the bytes of a board with so many places."""
    return places * NUMBERS.itemsize


class Board:
    """The numbers of a client's runs that are under way, each in the place of the thread at it.

    Args:
        memory: of the size that `size_of` says, at least.
    """

    def __init__(self, memory: memoryview) -> None:
        self._numbers = np.frombuffer(memory, NUMBERS, len(memory) // NUMBERS.itemsize)

    def enter(self, place: int, number: int) -> None:
        """A run begins."""
        self._numbers[place] = number

    def leave(self, place: int) -> None:
        """The run at a place has ended."""
        self._numbers[place] = 0

    def running(self) -> frozenset[int]:
        """Return the runs that are noted."""
        return frozenset(int(number) for number in self._numbers if number)
