"""Atomic writing of files: complete or absent even if the writer is killed.

A file is written under a temporary name, locked, and renamed when it is complete. The lock ends
with the process, so an unlocked temporary file was left by a killed writer; the next writer removes
it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

from crosschip.ir import InputError
from crosschip.ir.file_queries import StrPath
from crosschip.ir.files import open_own
from crosschip.ir.text import legible

_SUFFIX = ".part"
_DESCRIPTORS = ("/dev", "/dev/fd", "/proc/self/fd")
"""Folders of devices and of links to open files, in which no file is replaced."""

_ABANDONED_SECONDS = 600
"""The age at which a temporary file counts as abandoned if files cannot be locked."""

if sys.platform == "win32":

    def lock(descriptor: int) -> bool | None:
        """Return `None`: files cannot be locked."""
        return None

    _RENAMED_OPEN = False
else:
    import fcntl

    def lock(descriptor: int) -> bool | None:
        """Lock a file; return whether that succeeded, or `None` if the file system has no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True

    _RENAMED_OPEN = True


def write_user_file(path: StrPath, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file at a user's path atomically.

    An existing regular file, or a symbolic link to one, is replaced; links are not followed.

    Args:
        path: the path.
        parts: the content.

    Raises:
        InputError: the file cannot be written, or the path is no regular file.
    """
    folder, name = os.path.split(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise OSError(None, "something is there already, and is no file")
        if os.path.abspath(folder) in _DESCRIPTORS:
            raise OSError(None, f"{folder} is for devices; name another file")
        remove_abandoned_files(folder or ".", name)
        write_atomically(path, parts, folder or ".", mode=0o666)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{legible(str(path))}: cannot be written: {why}") from None


def write_atomically(
    path: StrPath, parts: Iterable[bytes | memoryview], folder: StrPath, mode: int = 0o600
) -> None:
    """Write or replace a file atomically.

    Args:
        path: the path.
        parts: the content.
        folder: the folder for the temporary file, on the same file system.
        mode: the permissions, without those that the process's mask excludes.

    Raises:
        OSError: the file cannot be written.
    """
    temporary, descriptor = _temporary(path, folder, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            if _RENAMED_OPEN:  # while the lock is held, so that it does not count as abandoned
                os.replace(temporary, path)
        if not _RENAMED_OPEN:
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def temporary_files(folder: StrPath, name: str = "") -> list[tuple[str, os.stat_result]]:
    """Return the temporary files in a folder, in progress or abandoned.

    Args:
        folder: the `folder` of `write_atomically`; it need not exist.
        name: the name of the final file; any if empty.

    Raises:
        OSError: the folder cannot be listed.
    """
    begin = _prefix(name) if name else ""
    files_in_progress = []
    try:
        files = list(os.scandir(os.fspath(folder)))
    except FileNotFoundError:
        return []
    for file in files:
        inner = file.name.removeprefix(begin).removesuffix(_SUFFIX)
        if inner and f"{begin}{inner}{_SUFFIX}" == file.name:
            with suppress(FileNotFoundError):  # its writer has renamed it
                files_in_progress.append((file.path, file.stat(follow_symlinks=False)))
    return files_in_progress


def remove_abandoned_files(folder: StrPath, name: str = "") -> None:
    """Remove the temporary files that killed writers left; ignore those that cannot be removed.

    The arguments are those of `temporary_files`.

    Raises:
        OSError: the folder cannot be listed.
    """
    for path, status in temporary_files(folder, name):
        with suppress(OSError):
            descriptor = open_own(path, os.O_RDWR)
            try:
                alone = lock(descriptor)
                if alone is None:
                    alone = time.time() - status.st_mtime > _ABANDONED_SECONDS
                if alone and _RENAMED_OPEN:
                    os.unlink(path)
            finally:
                os.close(descriptor)
            if alone and not _RENAMED_OPEN:
                os.unlink(path)


def _temporary(path: StrPath, folder: StrPath, mode: int) -> tuple[str, int]:
    """Create and lock a file; return its path and its descriptor."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        temporary = f"{_prefix(os.path.basename(path))}{os.urandom(8).hex()}{_SUFFIX}"
        temporary = os.path.join(folder, temporary)
        descriptor = os.open(temporary, flags, mode)
        # Another process may have removed the file between its creation and its lock.
        if lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)


def _prefix(name: str) -> str:
    """Return the prefix of a file's temporary names, shortened as file systems limit names."""
    return f".{name[:40]}."
