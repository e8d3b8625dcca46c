"""SHA-256 of many bytes: block by block, large data on several threads."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

BLOCK_SIZE = 2**20

_THREADS = min(4, os.cpu_count() or 1)
_WORTHWHILE = 4 * BLOCK_SIZE


def block_digests(data: bytes | memoryview) -> list[bytes]:
    """SHA-256 of each block of `BLOCK_SIZE` bytes, in order; the last block may be shorter."""
    view = memoryview(data)
    starts = range(0, len(view), BLOCK_SIZE)

    def digest(start: int) -> bytes:
        return hashlib.sha256(view[start : start + BLOCK_SIZE]).digest()

    if len(view) < _WORTHWHILE or _THREADS == 1:
        return list(map(digest, starts))
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(digest, starts))
    except RuntimeError:  # the process is ending, and there can be no more threads
        return list(map(digest, starts))
