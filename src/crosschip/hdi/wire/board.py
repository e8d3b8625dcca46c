"""The board: memory in which a service notes which runs it is at, for whoever outlives it.

A client reads it after its service has died, to know which of its runs may be to blame: those that
were under way, and no others that only waited.
"""

from __future__ import annotations

from mmap import mmap

import numpy as np

NUMBERS = np.dtype(np.uint64)


def size_of(workers: int) -> int:
    """The bytes of the board of a service that works on so many things at once."""
    return workers * NUMBERS.itemsize


class Board:
    """The numbers of a client's requests that are under way; 0 where there is none.

    Args:
        memory: of the size that `size_of` says, at least.
    """

    def __init__(self, memory: mmap) -> None:
        self._numbers = np.frombuffer(memory, NUMBERS, len(memory) // NUMBERS.itemsize)

    def enter(self, number: int) -> int:
        """Note a request; the place where it stands, and -1 if there is none."""
        for place, other in enumerate(self._numbers):
            if not other:
                self._numbers[place] = number
                return place
        return -1

    def leave(self, place: int) -> None:
        """The request at a place has ended."""
        if place >= 0:
            self._numbers[place] = 0

    def running(self) -> frozenset[int]:
        """The requests that are noted."""
        return frozenset(int(number) for number in self._numbers if number)
