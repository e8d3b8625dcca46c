"""Shorter turns of the interpreter's threads, while one of them works in the background.

A thread that needs the interpreter's lock waits until the present holder's turn ends, 5 ms by
default, which is longer than many runs.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.0005

_lock = threading.Lock()
_users = 0
_usual_seconds = 0.0


@contextmanager
def short_turns() -> Iterator[None]:
    """Let the threads of the process take shorter turns during the `with` block.

    An interval that the program sets meanwhile stays.
    """
    global _users, _usual_seconds
    with _lock:
        if not _users:
            _usual_seconds = sys.getswitchinterval()
            sys.setswitchinterval(min(_usual_seconds, TURN_SECONDS))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _restore()


def _restore() -> None:
    if abs(sys.getswitchinterval() - TURN_SECONDS) < 1e-6:
        sys.setswitchinterval(_usual_seconds)


def _reset_after_fork() -> None:
    """End short turns in a forked process, which lacks the threads that asked for them."""
    global _lock, _users
    _lock = threading.Lock()
    if _users:
        _users = 0
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
