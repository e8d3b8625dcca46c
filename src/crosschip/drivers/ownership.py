"""Who serves at a socket: one process at a time, which holds a lock on a file beside it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crosschip.ir import DeviceError
from crosschip.ir.files import open_own, open_regular

_LOCK = struct.Struct("hhqqi4x")
"""Linux's `struct flock`."""

_PATIENCE_SECONDS, _LOOK_SECONDS = 0.2, 0.002
"""So long a lock is waited for: whoever tidies, or is about to end, holds it for a moment."""

_STARTING_SECONDS = 60.0
"""So long a process may take until it serves: what it writes meanwhile is kept."""

_FIRST_PROCESS, _LAST_PROCESS = 1, 2**22
"""The process that all others descend from, which is never killed; the most that Linux numbers."""

_HELD = re.compile(r"^lock:.*\bOFDLCK\b.*\bWRITE\b", re.MULTILINE)
"""The line of `/proc/PID/fdinfo` about a lock that is held through a descriptor; see proc(5)."""

_MOST_BYTES = 4096
"""The most bytes of a lock file that are read."""

SUFFIXES = (".sock", ".lock", ".log", ".deaths")
"""Of the files of a driver: the socket, the lock, what the process wrote, how others died."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that serves at a socket, or did last.

    Attributes:
        device: what it runs.
        process: its number; `None` if it has ended as it should.
        alive: whether it is still there.
    """

    device: str
    process: int | None
    alive: bool


def own(path: Path, device: str) -> int:
    """Return a descriptor that makes this process the only one to serve at a socket.

    Args:
        path: of the socket.
        device: what it runs, for whoever wants to know.

    Raises:
        DeviceError: another one does, or nothing can be written there.
    """
    end = time.monotonic() + _PATIENCE_SECONDS
    try:
        while (descriptor := _held(path)) is None:
            if time.monotonic() > end:
                raise DeviceError(f"{path}: a driver serves there already; connect to it")
            time.sleep(_LOOK_SECONDS)
    except OSError as error:
        raise DeviceError(f"{_file(path)}: cannot be written: {error.strerror}") from None
    _write(descriptor, device, os.getpid())
    return descriptor


def disown(path: Path, descriptor: int) -> None:
    """End what `own` began; nothing is left but deaths that are to be told of."""
    path.unlink(missing_ok=True)
    if path.with_suffix(".deaths").exists():
        known = owner(path)
        _write(descriptor, known.device if known else "", None)
    else:
        _file(path).unlink(missing_ok=True)
    os.close(descriptor)


def forget(path: Path) -> None:
    """Remove what a driver has left that was killed because somebody wanted it to end."""
    with suppress(OSError):  # nothing depends on it
        descriptor = _held(path)
        if descriptor is not None:
            disown(path, descriptor)


def owned(path: Path) -> bool:
    """Return whether a process serves at a socket, or is about to. Nobody notices the question."""
    try:
        descriptor = open_own(_file(path), os.O_RDONLY)
    except OSError:
        return False
    try:
        return _locked(descriptor)
    finally:
        os.close(descriptor)


def owner(path: Path) -> Owner | None:
    """Return the process that serves at a socket, or did last; `None` if nothing is known of one."""
    alive = owned(path)
    try:
        with open_regular(_file(path), follow=False) as file:
            device, process = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    if not isinstance(device, str) or not (process is None or _is_process(process)):
        return None
    return Owner(device, process, alive)


def kill_owner(path: Path, process: int) -> bool:
    """Kill a process that does not answer, if it is the one that serves at a socket.

    A number in a file, or from the other end of a socket, may be any process by now: of another PID
    namespace, of a file that somebody else wrote, or one that has ended since. It is killed only
    if the kernel says that it holds the lock of this socket, and by a descriptor that can mean no
    other process.

    Args:
        path: of the socket.
        process: the number that the process is said to have.

    Returns:
        Whether it was killed.
    """
    if not _is_process(process) or process == os.getpid():
        return False
    try:
        handle = os.pidfd_open(process)
    except OSError:  # it is not there any more
        return False
    try:
        if _holds_lock(process, _file(path)):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True
    except OSError:  # it has ended meanwhile, or is somebody else's
        pass
    finally:
        os.close(handle)
    return False


def tidy(path: Path, since: float) -> None:
    """Remove what a driver has left that is not there any more: its socket, and what is old.

    Args:
        path: of the socket.
        since: the moment, in seconds since 1970, that makes all before it old.
    """
    with suppress(OSError):  # nothing depends on it
        descriptor = _held(path)
        if descriptor is None:
            return
        try:
            _remove_left(path, since)
        finally:
            os.close(descriptor)


def _remove_left(path: Path, since: float) -> None:
    words, deaths = path.with_suffix(".log"), path.with_suffix(".deaths")
    path.unlink(missing_ok=True)
    if _written(_file(path)) < since and _written(deaths) < since:
        deaths.unlink(missing_ok=True)
        _file(path).unlink(missing_ok=True)
        if _written(words, least=0) < time.time() - _STARTING_SECONDS:
            words.unlink(missing_ok=True)


def _written(file: Path, least: int = 1) -> float:
    """When so much was last written to a file, in seconds since 1970; 0 if it never was."""
    try:
        state = file.stat()
    except FileNotFoundError:
        return 0.0
    return state.st_mtime if state.st_size >= least else 0.0


def _file(path: Path) -> Path:
    return path.with_suffix(".lock")


def _write(descriptor: int, device: str, process: int | None) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps([device, process]).encode(), 0)


def _held(path: Path) -> int | None:
    """Return a descriptor that holds the lock; `None` if another one does.

    Raises:
        OSError: there can be no such file.
    """
    file = _file(path)
    descriptor = open_own(file, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0))
        if os.path.samestat(os.fstat(descriptor), file.lstat()):
            return descriptor
    except OSError:  # it is locked, or who held it has removed it
        pass
    os.close(descriptor)
    return None


def _locked(descriptor: int) -> bool:
    request = _LOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0)
    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, request)
    return bool(_LOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _holds_lock(process: int, file: Path) -> bool:
    """Return whether a process holds a lock file's lock, which the kernel lists with its descriptors.

    Raises:
        OSError: there is no such process or file, or it may not be looked at.
    """
    state = file.lstat()
    for descriptor in os.listdir(f"/proc/{process}/fd"):
        with suppress(OSError):  # closed meanwhile
            if os.path.samestat(os.stat(f"/proc/{process}/fd/{descriptor}"), state):
                descriptor_info = Path(f"/proc/{process}/fdinfo/{descriptor}").read_text()
                if _HELD.search(descriptor_info):
                    return True
    return False


def _is_process(number: object) -> bool:
    """Return whether a value can be the number of a process that may be killed."""
    return type(number) is int and _FIRST_PROCESS < number <= _LAST_PROCESS
