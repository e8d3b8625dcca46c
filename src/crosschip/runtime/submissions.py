"""The request queue of a compiled model, which is created for the first request."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.runtime.priority import Priority
    from crosschip.runtime.requests import Request, RequestQueue, Work


class Submissions:
    """Accepts requests and forwards them to a `requests.RequestQueue`.

    Args:
        name: the prefix of the threads' names.
        workers: the number of requests that run at once.
        capacity: the number of waiting requests.
    """

    def __init__(self, name: str, workers: int, capacity: int) -> None:
        self._name = name
        self.workers = workers
        self.capacity = capacity
        # Reentrant, because garbage collection may end a model at any moment.
        self._lock = threading.RLock()
        self._queue: RequestQueue | None = None
        self._closed = False

    def put(self, work: Work, priority: Priority, seconds: float | None, *, wait: bool) -> Request:
        """Accept a request; see `RequestQueue.put`."""
        return self._open_queue().put(work, priority, seconds, wait=wait)

    def close(self, timeout: float | None = None) -> None:
        """Accept no more requests, and wait until all accepted ones are answered.

        Args:
            timeout: the maximum number of seconds to wait for each thread.
        """
        with self._lock:
            self._closed = True
        if self._queue is not None:
            self._queue.close(timeout)

    def release(self) -> None:
        """Let the threads end when all accepted requests are answered."""
        if self._queue is not None:
            self._queue.release()

    @property
    def running(self) -> int:
        """The number of running requests."""
        return 0 if self._queue is None else self._queue.running

    def after_fork(self) -> None:
        """Reset the queue in a forked process, which has none of the threads."""
        self._lock = threading.RLock()  # another thread may have held it
        if self._queue is not None:
            self._queue.after_fork()

    def _open_queue(self) -> RequestQueue:
        # Importing it takes longer than loading a small model.
        from crosschip.runtime.requests import RequestQueue

        with self._lock:
            if self._queue is None:
                self._queue = RequestQueue(self._name, self.workers, self.capacity)
                if self._closed:
                    self._queue.close()
            return self._queue
