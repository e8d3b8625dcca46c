"""Work that nobody waits for: what is to be kept is written while the model runs already.

It is done in the order in which it comes, by a thread that is there as long as there is some. The
end of the process waits for it, so that nothing is lost, unless the process is killed.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

logger = logging.getLogger("crosschip.cache")

_MAX_TASKS = 8
"""The most tasks there are at once: what they keep is in memory until they are done."""

_DELAY_SECONDS = 0.05
"""How long tasks wait first, if nobody waits for them: a model that is compiled is mostly run."""

_NICENESS = 10
"""The share of the processor that is left to the tasks: about a tenth of what others get."""


class BackgroundWriter:
    """Tasks, each with the key of the entry that it writes; the first is the one under way."""

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
            # The end of a process waits for threads of this sort.
            worker = threading.Thread(target=self._run_later, name="crosschip cache", daemon=False)
        try:
            worker.start()
        except RuntimeError:  # there can be no more threads: the process is ending
            self._run()

    def wait(self, key: str | None = None) -> None:
        """Wait until a task is done; all of them if no key is named."""
        with self._changed:
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
        left = True
        while left:
            key, work = self._tasks[0]
            try:
                work()
            except Exception as error:
                logger.warning("cache entry %s: could not be written (%s)", key, error)
            with self._changed:
                self._tasks.popleft()
                left = bool(self._tasks)
                self._changed.notify_all()


def _lower_priority() -> None:
    """Lower the priority of this thread, so that the processor is left to the model.

    Threads that this one starts inherit its own.
    """
    if sys.platform == "linux":
        this = threading.get_native_id()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, this, os.getpriority(os.PRIO_PROCESS, this) + _NICENESS)


_writer = BackgroundWriter()


def put(key: str, work: Callable[[], object]) -> None:
    """Schedule the writing of an entry.

    Args:
        key: the entry's; who reads it waits for that.
        work: writes it.
    """
    _writer.put(key, work)


def wait(key: str | None = None) -> None:
    """Wait until the entry of a key is written, if that is scheduled; all entries if no key."""
    _writer.wait(key)


def _reset_after_fork() -> None:
    """Start without tasks in a forked process: the thread, which goes on, is in the other one."""
    global _writer
    _writer = BackgroundWriter()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
