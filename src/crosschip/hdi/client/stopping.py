"""Ending drivers that somebody wants to be gone."""

from __future__ import annotations

import time
from pathlib import Path

from crosschip.hdi.client.connection import Connection, Died, connect
from crosschip.hdi.client.starting import end_process
from crosschip.hdi.ownership import owned
from crosschip.hdi.wire import messages
from crosschip.ir import DeviceError

_LOOK_SECONDS = 0.004
_SILENCE_SECONDS = 2.0


def stop(path: Path, patience: float) -> bool:
    """End the driver at a socket, and wait until it is gone.

    Args:
        path: of the socket.
        patience: after how many seconds a driver that has been asked is killed.

    Returns:
        Whether it has ended by itself; one that gives no answer is killed.

    Raises:
        DeviceError: none serves there.
    """
    try:
        end, process = connect(path)
    except OSError as error:
        raise DeviceError(f"{path}: no driver serves there: {error.strerror}") from None
    end.close()
    willing = _ask(path)
    if not (willing and _gone(path, patience)):
        end_process(process)
        willing = False
        _gone(path, _SILENCE_SECONDS)
    return willing


def _ask(path: Path) -> bool:
    """Ask a driver to end; whether it has heard that."""
    try:
        connection = Connection(path, "stop", _SILENCE_SECONDS, watches=True)
    except (OSError, DeviceError):
        return False
    try:
        connection.ask(messages.Done, messages.Stop)
    except Died:  # it has ended already, or gives no answer
        return not connection.hangs
    finally:
        connection.close()
        connection.release()
    return True


def _gone(path: Path, patience: float) -> bool:
    """Wait for the end of a driver; whether it has come."""
    end = time.monotonic() + patience
    while owned(path):
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
