"""Starting, connecting to and stopping a driver's process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from crosschip.drivers.client.connection import Connection, Died
from crosschip.drivers.client.policy import Timeouts
from crosschip.drivers.endpoint import Endpoint
from crosschip.drivers.ownership import Owner, is_owned, kill_owner, read_owner, remove_files
from crosschip.drivers.protocol import messages
from crosschip.ir import DeviceError
from crosschip.ir.files import file_end, open_own

_POLL_SECONDS = 0.004
_START_SECONDS = 120.0
_KILLED_SECONDS = 5.0
_MAX_LAST_WORDS, _LOG_BYTES = 1000, 100_000
_FATAL = "Fatal Python error"
_LINGER_SECONDS = 3.0


class Process:
    """A driver's process that this process has started and waits for.

    Args:
        arguments: the arguments of `crosschip`.
        endpoint: the driver's endpoint, whose log receives the output.

    Attributes:
        number: the process id.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, arguments: Sequence[str], endpoint: Endpoint) -> None:
        command = [sys.executable, "-m", "crosschip", *arguments]
        log = open_own(endpoint.log, os.O_WRONLY | os.O_CREAT)
        try:
            os.ftruncate(log, 0)
            self.number = os.posix_spawn(
                sys.executable,
                command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                ],
                setsid=True,
            )
        finally:
            os.close(log)
        self._exit_reason = ""
        self._ended = threading.Event()
        # A child process must be waited for, or it becomes a zombie.
        threading.Thread(target=self._wait, name=f"driver-{self.number}", daemon=True).start()

    def exit_reason(self, seconds: float = 0.0) -> str:
        """Return how the process ended; empty if it has not.

        Args:
            seconds: the time to wait for its end.
        """
        return self._exit_reason if self._ended.wait(seconds) else ""

    def _wait(self) -> None:
        try:
            _, status = os.waitpid(self.number, 0)
        except ChildProcessError:  # the program has already waited for it
            self._exit_reason = "ended"
        else:
            code = os.waitstatus_to_exitcode(status)
            died = f"died of {signal.Signals(-code).name}" if code < 0 else ""
            self._exit_reason = died or f"ended with status {code}"
        self._ended.set()


def connect(
    endpoint: Endpoint, client: str, timeouts: Timeouts
) -> tuple[Connection, Process | None]:
    """Connect to the driver of an endpoint, started if needed.

    Args:
        endpoint: the endpoint.
        client: the client's name.
        timeouts: the timeouts.

    Returns:
        The connection, and the process if this call started it.

    Raises:
        DeviceError: the driver does not start; or none serves an endpoint that crosschip does
            not start.
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
            if death.hangs and not killed and is_owned(endpoint.path):
                raise unknown_process(endpoint.path) from None
        except OSError as error:
            raise DeviceError(f"{endpoint.path}: {error.strerror}") from None
        if not endpoint.started:
            raise DeviceError(
                f"{endpoint.path}: no driver serves there; start one with `crosschip driver serve "
                f"{endpoint.device} --socket {endpoint.path}`"
            )
        if (
            process is not None
            and (exit_reason := process.exit_reason())
            and not is_owned(endpoint.path)
        ):
            raise DeviceError(f"the driver {exit_reason} as it started{last_words(endpoint)}")
        if process is None and not is_owned(endpoint.path):
            process = _start(endpoint)
        if time.monotonic() > end:
            raise DeviceError(
                f"the driver has not started in {_START_SECONDS:g} seconds{last_words(endpoint)}"
            )
        time.sleep(_POLL_SECONDS)


def last_words(endpoint: Endpoint) -> str:
    """Return the end of a driver's log as the end of a sentence; empty without output."""
    try:
        output = file_end(endpoint.log, _LOG_BYTES).decode(errors="replace")
    except OSError:
        return ""
    # faulthandler writes the stack after this line
    _, fatal, stack = output.rpartition(_FATAL)
    output = f"{fatal}{stack[:_MAX_LAST_WORDS]}" if fatal else output[-_MAX_LAST_WORDS:]
    text = "".join(c for c in " ".join(output.split()) if c.isprintable())
    return f"; its last words: {text}" if text else ""


def unknown_process(path: Path) -> DeviceError:
    """Return the error of an unresponsive driver whose process cannot be identified."""
    return DeviceError(
        f"{path}: the driver does not respond, and its process cannot be identified (it may be in "
        "another container or PID namespace), so no process was killed; end it where it runs"
    )


def _start(endpoint: Endpoint) -> Process:
    """Start a process that will serve, or end because another one does."""
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
            f"{sys.executable} does not start, or {endpoint.log} cannot be written: "
            f"{error.strerror}"
        ) from None


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
