"""Measured runs in the background, between which the process may be forked.

A forked process cannot use an engine that another thread was running. A fork therefore waits for
the end of a measured run, up to a limit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

_FORK_SECONDS = 5.0
"""The maximum number of seconds that a fork waits."""

_lock = threading.Lock()
_is_held_by_fork = False


def between_forks(execute: Callable[[Any], Sequence[Any]]) -> Callable[[Any], None]:
    """Return a function that executes once, while which the process is not forked."""

    def run(inputs: Any) -> None:
        with _lock:
            execute(inputs)

    return run


def is_running_at_fork() -> bool:
    """Return, in a forked process, whether a measured run was in progress at the fork."""
    return _lock.locked() and not _is_held_by_fork


def _before_fork() -> None:
    global _is_held_by_fork
    _is_held_by_fork = _lock.acquire(timeout=_FORK_SECONDS)


def _after_fork() -> None:
    global _is_held_by_fork
    if _is_held_by_fork:
        _is_held_by_fork = False
        _lock.release()


def _after_fork_in_child() -> None:
    global _lock, _is_held_by_fork
    _lock = threading.Lock()
    _is_held_by_fork = False


if hasattr(os, "register_at_fork"):
    # The last is called after that of `lifetime`, which has been imported, and asks whether a run
    # was in progress.
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
