"""Background writing of cache entries, while the model runs already.

One thread, which exists while there are tasks, does them in order. The end of the process waits for
it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from crosschip.progress import task

logger = logging.getLogger("crosschip.cache")

_MAX_TASKS = 8
"""The most pending tasks, whose content is in memory."""

_DELAY_SECONDS = 0.05
"""The delay of tasks that no caller waits for, since a model is mostly run after compiling."""

_NICENESS = 10
"""The niceness of the thread: it gets about a tenth of the processor time of others."""


class BackgroundWriter:
    """A queue of tasks, each with the key of the entry that it writes; the first is running."""

    def __init__(self) -> None:
        self._tasks: deque[tuple[str, Callable[[], object]]] = deque()
        self._changed = threading.Condition()
        self._is_awaited = False

    def put(self, key: str, work: Callable[[], object]) -> None:
        """Add a task; wait first if there are too many."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._tasks) < _MAX_TASKS)
            self._tasks.append((key, work))
            if len(self._tasks) > 1:
                return
            # Not a daemon, so that the end of the process waits for the thread.
            worker = threading.Thread(target=self._run_later, name="crosschip cache", daemon=False)
        try:
            worker.start()
        except RuntimeError:  # there can be no more threads: the process is ending
            self._run()

    def wait(self, key: str | None = None) -> None:
        """Wait until the task of a key is done; all tasks if the key is `None`."""
        if not self._tasks:
            return
        with task("writing compiled programs to the cache"), self._changed:
            self._is_awaited = True
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: not any(key is None or key == each for each, _ in self._tasks)
            )
            self._is_awaited = False

    def _run_later(self) -> None:
        _lower_priority()
        with self._changed:
            self._changed.wait_for(lambda: self._is_awaited, _DELAY_SECONDS)
        self._run()

    def _run(self) -> None:
        pending = True
        while pending:
            key, work = self._tasks[0]
            try:
                work()
            except Exception as error:
                logger.warning("cache entry %s: could not be written (%s)", key, error)
            with self._changed:
                self._tasks.popleft()
                pending = bool(self._tasks)
                self._changed.notify_all()


def _lower_priority() -> None:
    """Lower the priority of this thread and of threads that it starts."""
    if sys.platform == "linux":
        this = threading.get_native_id()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, this, os.getpriority(os.PRIO_PROCESS, this) + _NICENESS)


_writer = BackgroundWriter()


def put(key: str, work: Callable[[], object]) -> None:
    """Schedule the writing of an entry.

    Args:
        key: the key of the entry; readers of the entry wait for the writing.
        work: writes the entry.
    """
    _writer.put(key, work)


def wait(key: str | None = None) -> None:
    """Wait until the scheduled writing of an entry is done; of all entries if the key is `None`."""
    _writer.wait(key)


def _reset_after_fork() -> None:
    """Start without tasks in a forked process, since the thread runs in the parent."""
    global _writer
    _writer = BackgroundWriter()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
