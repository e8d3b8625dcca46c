"""The user's secret: 32 random bytes that authenticate cache entries."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import BinaryIO

from crosschip.hal.folders import data_folder
from crosschip.ir import CacheError
from crosschip.ir.files import open_regular

SIZE = 32

_ADVICE = "set CROSSCHIP_CACHE_SECRET to a file of your own, or turn the cache off (cache=False)"


def secret_file() -> str:
    """Return `CROSSCHIP_CACHE_SECRET`, or a path in the platform's folder for the user's data."""
    configured = os.environ.get("CROSSCHIP_CACHE_SECRET")
    if configured:
        return os.path.expanduser(configured)
    return os.path.join(data_folder(), "cache.secret")


class NoRoomError(CacheError):
    """There is no secret, and none can be written: the disk is full or read-only."""


def is_full(error: OSError) -> bool:
    """Return whether an error means that nothing can be written to this disk."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


def secret() -> bytes:
    """Return the secret in `secret_file()`, which is created if it does not exist.

    Raises:
        NoRoomError: the file does not exist, and the disk is full or read-only.
        CacheError: the file cannot be created or read, is open to other users, or is malformed.
    """
    path = secret_file()
    try:
        try:
            return _read(path)
        except FileNotFoundError:
            _create(path)
            return _read(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        kind = NoRoomError if isinstance(error, OSError) and is_full(error) else CacheError
        raise kind(f"cache secret {path}: cannot be made or read ({why}); {_ADVICE}") from None


def _create(path: str) -> None:
    """Create a secret, unless another process creates one at the same time."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if _create_unnamed(path, folder):
        return
    # Imported late: few systems need it, and the import takes long.
    import tempfile

    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".cache.secret.")
    try:
        with os.fdopen(handle, "wb") as file:
            _fill(file)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def _create_unnamed(path: str, folder: str) -> bool:
    """Create the secret as an unnamed file, linked when complete; return whether that worked."""
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except (AttributeError, OSError):
        return False
    with os.fdopen(handle, "wb") as file:
        _fill(file)
        try:
            # The link in /proc is followed only if `src_dir_fd` is passed, though it is not used.
            os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle)
        except FileExistsError:
            return True
        except OSError:
            return False
    return True


def _fill(file: BinaryIO) -> None:
    """Write a new secret."""
    file.write(os.urandom(SIZE))
    file.flush()
    os.fsync(file.fileno())


def _read(path: str) -> bytes:
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        if hasattr(os, "geteuid"):
            if status.st_uid != os.geteuid():
                raise CacheError(f"cache secret {path}: belongs to another user; {_ADVICE}")
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise CacheError(
                    f"cache secret {path}: is open to other users, who may have read it; remove "
                    f"it to have a new one made, or make it yours alone (chmod 600)"
                )
        content = file.read(SIZE + 1)
    if len(content) != SIZE:
        raise CacheError(
            f"cache secret {path}: does not hold exactly {SIZE} bytes; remove it to have a new "
            f"one made, or {_ADVICE}"
        )
    return content
