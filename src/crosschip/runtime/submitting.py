"""The queue of a compiled model's requests, made for the first one: few models have any."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.runtime.priority import Priority
    from crosschip.runtime.requests import Request, RequestQueue, Work


class Submissions:
    """Takes requests on, as `requests.RequestQueue` does.

    Args:
        name: begins the names of the threads.
        workers: how many requests run at once.
        capacity: how many wait besides, at least 1.

    Attributes:
        workers: how many requests run at once.
        capacity: how many wait besides.
    """

    def __init__(self, name: str, workers: int, capacity: int) -> None:
        self._name = name
        self.workers = workers
        self.capacity = capacity
        # Reentrant: the end of a model that is found to be garbage comes at any moment.
        self._lock = threading.RLock()
        self._queue: RequestQueue | None = None
        self._closed = False

    def put(self, work: Work, priority: Priority, seconds: float | None, *, wait: bool) -> Request:
        """Take on a request; see `RequestQueue.put`."""
        return self._open_queue().put(work, priority, seconds, wait=wait)

    def close(self, timeout: float | None = None) -> None:
        """Take nothing on any more, and wait until what was taken on is answered.

        Args:
            timeout: at most so many seconds for each thread.
        """
        with self._lock:
            self._closed = True
        if self._queue is not None:
            self._queue.close(timeout)

    def release(self) -> None:
        """Let the threads end, once what was taken on is answered."""
        if self._queue is not None:
            self._queue.release()

    @property
    def running(self) -> int:
        """The number of requests that are being run."""
        return 0 if self._queue is None else self._queue.running

    def after_fork(self) -> None:
        """Begin anew in a forked process, which has none of the threads."""
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
