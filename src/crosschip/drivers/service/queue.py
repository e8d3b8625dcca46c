"""The order in which runs are taken."""

from __future__ import annotations

import threading
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Queue(Generic[T]):
    """Work that waits: the most urgent first, among equals the first come; so much at once.

    Nothing here waits: whoever brings work and whoever has ended some takes what is next.

    Args:
        workers: how much is under way at once.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._heap: list[tuple[int, int, bool, T]] = []
        self._count = 0
        self.running = 0
        self._alone = False

    @property
    def waiting(self) -> int:
        """How much waits."""
        return len(self._heap)

    def put(self, work: T, priority: int, *, alone: bool = False) -> None:
        """Add work.

        Args:
            work: what it is.
            priority: higher comes first.
            alone: whether nothing else may be under way meanwhile.
        """
        with self._lock:
            self._count += 1
            heappush(self._heap, (-priority, self._count, alone, work))

    def take(self) -> T | None:
        """Return the next work, under way from now on; `None` if there is none, or enough is under way."""
        with self._lock:
            if not self._heap or self._alone or self.running >= self.workers:
                return None
            if self._heap[0][2]:
                if self.running:
                    return None
                self._alone = True
            self.running += 1
            return heappop(self._heap)[3]

    def end(self) -> None:
        """Some work has ended."""
        with self._lock:
            self.running -= 1
            if not self.running:
                self._alone = False
