"""Ownership of a driver's socket: the one process that serves it holds a lock on a file."""

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

_LOCK_SECONDS, _POLL_SECONDS = 0.2, 0.002
"""The time to wait for the lock, which cleanup and ending processes hold briefly; poll interval."""

_STARTING_SECONDS = 60.0
"""The maximum start-up time of a driver, during which its log file is kept."""

_FIRST_PROCESS, _LAST_PROCESS = 1, 2**22
"""The init process, which is never killed; Linux's maximum process id."""

_LOCK_LINE = re.compile(r"^lock:.*\bOFDLCK\b.*\bWRITE\b", re.MULTILINE)
"""The line of `/proc/PID/fdinfo` for a lock held through a descriptor; see proc(5)."""

_MAX_BYTES = 4096
"""The maximum number of bytes read from a lock file."""

SUFFIXES = (".sock", ".lock", ".log", ".deaths")
"""The suffixes of a driver's files: socket, lock, log and deaths of earlier processes."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that serves a socket, or served it last.

    Attributes:
        device: the device's name.
        process: the process id; `None` after a regular end.
        alive: whether the process still runs.
    """

    device: str
    process: int | None
    alive: bool


def acquire(path: Path, device: str) -> int:
    """Make this process the owner of a socket; return the lock's descriptor.

    Args:
        path: the socket's path.
        device: the device's name, recorded in the lock file.

    Raises:
        DeviceError: another process owns it, or the lock file cannot be written.
    """
    end = time.monotonic() + _LOCK_SECONDS
    try:
        while (descriptor := _try_lock(path)) is None:
            if time.monotonic() > end:
                raise DeviceError(f"{path}: a driver serves there already; connect to it")
            time.sleep(_POLL_SECONDS)
    except OSError as error:
        raise DeviceError(f"{_lock_file(path)}: cannot be written: {error.strerror}") from None
    _write(descriptor, device, os.getpid())
    return descriptor


def release(path: Path, descriptor: int) -> None:
    """Release ownership; remove all files but unreported deaths."""
    path.unlink(missing_ok=True)
    if path.with_suffix(".deaths").exists():
        last_owner = read_owner(path)
        _write(descriptor, last_owner.device if last_owner else "", None)
    else:
        _lock_file(path).unlink(missing_ok=True)
    os.close(descriptor)


def remove_files(path: Path) -> None:
    """Remove the files of a driver that was stopped by killing it."""
    with suppress(OSError):  # best effort
        descriptor = _try_lock(path)
        if descriptor is not None:
            release(path, descriptor)


def is_owned(path: Path) -> bool:
    """Return whether a process owns a socket. The owner does not notice the test."""
    try:
        descriptor = open_own(_lock_file(path), os.O_RDONLY)
    except OSError:
        return False
    try:
        return _is_locked(descriptor)
    finally:
        os.close(descriptor)


def read_owner(path: Path) -> Owner | None:
    """Return the process that serves a socket, or served it last; `None` if unknown."""
    alive = is_owned(path)
    try:
        with open_regular(_lock_file(path), follow=False) as file:
            device, process = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    if not isinstance(device, str) or not (process is None or _is_process(process)):
        return None
    return Owner(device, process, alive)


def kill_owner(path: Path, process: int) -> bool:
    """Kill an unresponsive process, if it is the owner of a socket.

    A process id from a file or a socket may belong to any process: it may be from another PID
    namespace, forged, or reused. Therefore the process is killed only if the kernel lists it as
    holder of this socket's lock, and through a pidfd, which cannot change its meaning.

    Args:
        path: the socket's path.
        process: the alleged process id.

    Returns:
        Whether it was killed.
    """
    if not _is_process(process) or process == os.getpid():
        return False
    try:
        handle = os.pidfd_open(process)
    except OSError:  # it has ended
        return False
    try:
        if _holds_lock(process, _lock_file(path)):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True
    except OSError:  # it has ended, or belongs to another user
        pass
    finally:
        os.close(handle)
    return False


def clean_up(path: Path, since: float) -> None:
    """Remove the socket of a driver that has ended, and its old files.

    Args:
        path: the socket's path.
        since: the time, in seconds since 1970, before which files are old.
    """
    with suppress(OSError):  # best effort
        descriptor = _try_lock(path)
        if descriptor is None:
            return
        try:
            _remove_stale(path, since)
        finally:
            os.close(descriptor)


def _remove_stale(path: Path, since: float) -> None:
    log, deaths = path.with_suffix(".log"), path.with_suffix(".deaths")
    path.unlink(missing_ok=True)
    if _modified(_lock_file(path)) < since and _modified(deaths) < since:
        deaths.unlink(missing_ok=True)
        _lock_file(path).unlink(missing_ok=True)
        if _modified(log, min_bytes=0) < time.time() - _STARTING_SECONDS:
            log.unlink(missing_ok=True)


def _modified(file: Path, min_bytes: int = 1) -> float:
    """Return a file's modification time if it has at least `min_bytes` bytes, else 0."""
    try:
        state = file.stat()
    except FileNotFoundError:
        return 0.0
    return state.st_mtime if state.st_size >= min_bytes else 0.0


def _lock_file(path: Path) -> Path:
    return path.with_suffix(".lock")


def _write(descriptor: int, device: str, process: int | None) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps([device, process]).encode(), 0)


def _try_lock(path: Path) -> int | None:
    """Try to acquire the lock; return its descriptor, or `None` if it is taken.

    Raises:
        OSError: the lock file cannot be opened.
    """
    file = _lock_file(path)
    descriptor = open_own(file, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0))
        if os.path.samestat(os.fstat(descriptor), file.lstat()):
            return descriptor
    except OSError:  # it is locked, or its last holder has removed it
        pass
    os.close(descriptor)
    return None


def _is_locked(descriptor: int) -> bool:
    request = _LOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0)
    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, request)
    return bool(_LOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _holds_lock(process: int, file: Path) -> bool:
    """Return whether a process holds a file's lock, by the kernel's list of its descriptors.

    Raises:
        OSError: the process or the file does not exist, or access is denied.
    """
    state = file.lstat()
    for descriptor in os.listdir(f"/proc/{process}/fd"):
        with suppress(OSError):  # another thread has closed it
            if os.path.samestat(os.stat(f"/proc/{process}/fd/{descriptor}"), state):
                descriptor_info = Path(f"/proc/{process}/fdinfo/{descriptor}").read_text()
                if _LOCK_LINE.search(descriptor_info):
                    return True
    return False


def _is_process(number: object) -> bool:
    """Return whether a value is a valid id of a process that may be killed."""
    return type(number) is int and _FIRST_PROCESS < number <= _LAST_PROCESS
