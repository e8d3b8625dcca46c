"""Stopping of drivers on request."""

from __future__ import annotations

import time
from pathlib import Path

from crosschip.drivers.client.connection import Connection, Died
from crosschip.drivers.client.process import unknown_process
from crosschip.drivers.client.timeouts import Timeouts
from crosschip.drivers.ownership import Owner, is_owned, kill_owner, read_owner, remove_files
from crosschip.drivers.protocol import messages
from crosschip.ir import DeviceError

_POLL_SECONDS = 0.004
_KILLED_SECONDS = 5.0


def stop(path: Path, seconds: float) -> bool:
    """Stop the driver at a socket, and wait for its end.

    Args:
        path: the socket's path.
        seconds: the time after which it is killed.

    Returns:
        Whether it ended regularly; an unresponsive driver is killed.

    Raises:
        DeviceError: no driver serves the socket, or an unresponsive one cannot be identified,
            so that no process is killed.
    """
    old_owner = read_owner(path)
    try:
        process = _request_stop(path)
    except Died as death:
        process, seconds = death.process, seconds if not death.hangs else 0.0
    except OSError as error:
        is_full = isinstance(error, BlockingIOError)  # its backlog of connections is full
        if not is_full or old_owner is None or not old_owner.alive or old_owner.process is None:
            raise DeviceError(f"{path}: no driver serves there: {error.strerror}") from None
        process, seconds = old_owner.process, 0.0
    if _wait_for_end(path, old_owner, seconds):
        return True
    if not kill_owner(path, process) and not _wait_for_end(path, old_owner, 0.0):
        raise unknown_process(path)
    if _wait_for_end(path, old_owner, _KILLED_SECONDS):
        remove_files(path)
    return False


def _request_stop(path: Path) -> int:
    """Request the driver's end; return its process id.

    Raises:
        Died: it has already ended, or does not answer.
    """
    connection = Connection(path, "stop", Timeouts(), watches=True)
    process: int = connection.process
    try:
        connection.ask(messages.Done, messages.Stop)
    finally:
        connection.close()
        connection.release()
    return process


def _wait_for_end(path: Path, old_owner: Owner | None, seconds: float) -> bool:
    """Wait until the owner no longer serves; return whether that happened in time."""
    end = time.monotonic() + seconds
    while is_owned(path) and read_owner(path) == old_owner:
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True
