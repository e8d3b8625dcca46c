"""Ending drivers that somebody wants to be gone."""

from __future__ import annotations

import time
from pathlib import Path

from crosschip.drivers.client.connection import Connection, Died
from crosschip.drivers.client.starting import unknown_process
from crosschip.drivers.client.timeouts import Timeouts
from crosschip.drivers.ownership import Owner, forget, kill_owner, owned, owner
from crosschip.drivers.protocol import messages
from crosschip.ir import DeviceError

_LOOK_SECONDS = 0.004
_KILLED_SECONDS = 5.0


def stop(path: Path, seconds: float) -> bool:
    """End the driver at a socket, and wait until it is gone.

    Args:
        path: of the socket.
        seconds: after how many seconds a driver that has been asked to end is killed.

    Returns:
        Whether it has ended by itself; one that gives no answer is killed.

    Raises:
        DeviceError: none serves there, or one that gives no answer cannot be told from other
            processes, so that nothing is killed.
    """
    before = owner(path)
    try:
        process = _ask(path)
    except Died as death:
        process, seconds = death.process, seconds if not death.hangs else 0.0
    except OSError as error:
        crowded = isinstance(error, BlockingIOError)  # it lets nobody in, and many wait for that
        if not crowded or before is None or not before.alive or before.process is None:
            raise DeviceError(f"{path}: no driver serves there: {error.strerror}") from None
        process, seconds = before.process, 0.0
    if _gone(path, before, seconds):
        return True
    if not kill_owner(path, process) and not _gone(path, before, 0.0):
        raise unknown_process(path)
    if _gone(path, before, _KILLED_SECONDS):
        forget(path)
    return False


def _ask(path: Path) -> int:
    """Ask a driver to end; its process.

    Raises:
        Died: it has ended already, or gives no answer.
    """
    connection = Connection(path, "stop", Timeouts(), watches=True)
    process: int = connection.process
    try:
        connection.ask(messages.Done, messages.Stop)
    finally:
        connection.close()
        connection.release()
    return process


def _gone(path: Path, before: Owner | None, seconds: float) -> bool:
    """Wait until who served before does not any more; another may. Whether it has come to that."""
    end = time.monotonic() + seconds
    while owned(path) and owner(path) == before:
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
