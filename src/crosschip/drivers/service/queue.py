"""Priority queue of runs."""

from __future__ import annotations

import threading
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Queue(Generic[T]):
    """A queue of jobs by priority, then order of arrival, with a limit on concurrent jobs.

    No method blocks: a thread that adds or finishes a job takes the next one itself.

    Args:
        workers: the maximum number of concurrent jobs.
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
        """The number of queued jobs."""
        return len(self._heap)

    def put(self, job: T, priority: int, *, alone: bool = False) -> None:
        """Add a job.

        Args:
            job: the job.
            priority: the priority; higher is first.
            alone: whether no other job may run concurrently.
        """
        with self._lock:
            self._count += 1
            heappush(self._heap, (-priority, self._count, alone, job))

    def take(self) -> T | None:
        """Start the next job; return `None` if none is queued or may start."""
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
        """Record the end of a job."""
        with self._lock:
            self.running -= 1
            if not self.running:
                self._alone = False
