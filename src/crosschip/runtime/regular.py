"""Opening regular files, and nothing else that a path may lead to."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

# A pipe is opened without waiting for its other end. Not every system has each of these.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: Path, *, follow: bool = False) -> BinaryIO:
    """Open a regular file for reading.

    Args:
        path: the file.
        follow: open what a symbolic link at this place leads to; refused otherwise.

    Raises:
        OSError: the file cannot be opened, or is no regular file; `strerror` says why.
    """
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | _NO_LINK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
