"""Starting the process of a driver."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from crosschip.drivers.client.connection import Connection, Died
from crosschip.drivers.client.timeouts import Timeouts
from crosschip.drivers.endpoint import Endpoint
from crosschip.drivers.ownership import kill_owner, owned
from crosschip.ir import DeviceError
from crosschip.ir.files import file_end, open_own

_LOOK_SECONDS = 0.004
_START_SECONDS = 120.0
_LAST_WORDS, _LOOKED_THROUGH = 1000, 100_000
_FATAL = "Fatal Python error"
_LINGER_SECONDS = 3.0


class Process:
    """A process that was started here, and whose end is noticed here.

    Args:
        arguments: of `crosschip`.
        endpoint: whose driver it is; what the process writes goes beside its socket.

    Attributes:
        number: the process's.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, arguments: Sequence[str], endpoint: Endpoint) -> None:
        command = [sys.executable, "-m", "crosschip", *arguments]
        words = open_own(endpoint.words, os.O_WRONLY | os.O_CREAT)
        try:
            os.ftruncate(words, 0)
            self.number = os.posix_spawn(
                sys.executable,
                command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, words, 1),
                    (os.POSIX_SPAWN_DUP2, words, 2),
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                ],
                setsid=True,
            )
        finally:
            os.close(words)
        self._fate = ""
        self._ended = threading.Event()
        # Whoever starts a process must see to its end, or it stays in the system's table.
        threading.Thread(target=self._await, name=f"driver-{self.number}", daemon=True).start()

    def fate(self, seconds: float = 0.0) -> str:
        """How it ended, in words; empty if it has not.

        Args:
            seconds: how long to wait for its end.
        """
        return self._fate if self._ended.wait(seconds) else ""

    def _await(self) -> None:
        try:
            _, status = os.waitpid(self.number, 0)
        except ChildProcessError:  # the program waits for all of its children itself
            self._fate = "ended"
        else:
            code = os.waitstatus_to_exitcode(status)
            died = f"died of {signal.Signals(-code).name}" if code < 0 else ""
            self._fate = died or f"ended with status {code}"
        self._ended.set()


def connected(
    endpoint: Endpoint, client: str, timeouts: Timeouts
) -> tuple[Connection, Process | None]:
    """Return a connection to the driver of an endpoint, which is started if there is none.

    Args:
        endpoint: whose.
        client: what this client calls itself.
        timeouts: how long it is waited for.

    Returns:
        The connection, and the process if it was started here.

    Raises:
        DeviceError: it does not start, or nobody serves where crosschip does not start drivers.
    """
    process: Process | None = None
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return Connection(endpoint.path, client, timeouts), process
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError, BlockingIOError):
            pass
        except Died as death:
            if not endpoint.started:
                raise
            killed = death.hangs and kill_owner(endpoint.path, death.process)
            if death.hangs and not killed and owned(endpoint.path):
                raise unknown_process(endpoint.path) from None
        except OSError as error:
            raise DeviceError(f"{endpoint.path}: {error.strerror}") from None
        if not endpoint.started:
            raise DeviceError(
                f"{endpoint.path}: no driver serves there; start one with `crosschip driver serve "
                f"{endpoint.device} --socket {endpoint.path}`"
            )
        if process is not None and (fate := process.fate()) and not owned(endpoint.path):
            raise DeviceError(f"the driver {fate} as it started{last_words(endpoint)}")
        if process is None and not owned(endpoint.path):
            process = _started(endpoint)
        if time.monotonic() > end:
            raise DeviceError(
                f"the driver has not started in {_START_SECONDS:g} seconds{last_words(endpoint)}"
            )
        time.sleep(_LOOK_SECONDS)


def last_words(endpoint: Endpoint) -> str:
    """Return the end of what a driver wrote, as the end of a sentence; empty if it wrote nothing."""
    try:
        written = file_end(endpoint.words, _LOOKED_THROUGH).decode(errors="replace")
    except OSError:
        return ""
    # Python tells first what it was at when it had to end.
    _, fatal, where = written.rpartition(_FATAL)
    written = f"{fatal}{where[:_LAST_WORDS]}" if fatal else written[-_LAST_WORDS:]
    words = "".join(c for c in " ".join(written.split()) if c.isprintable())
    return f"; its last words: {words}" if words else ""


def unknown_process(path: Path) -> DeviceError:
    """Return the error that a driver gives no answer, and that nobody knows which process it is."""
    return DeviceError(
        f"{path}: the driver there gives no answer, and it cannot be told which process it is (it "
        "may be in another container or PID namespace), so none was killed; end it where it runs"
    )


def _started(endpoint: Endpoint) -> Process:
    """Return a process that will serve, or will find that another one does."""
    settings = [
        f"--property={endpoint.device.partition(':')[0]}.{name}={value}"
        for name, value in endpoint.properties
    ]
    arguments = ["driver", "serve", endpoint.device, "--socket", str(endpoint.path)]
    linger = ["--linger", f"{_LINGER_SECONDS:g}"]
    try:
        return Process([*arguments, *linger, *settings], endpoint)
    except OSError as error:
        raise DeviceError(
            f"{sys.executable} does not start, or {endpoint.words} cannot be written: "
            f"{error.strerror}"
        ) from None
