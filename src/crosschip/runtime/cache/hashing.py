"""SHA-256 of many bytes: block by block, large data on several threads."""

from __future__ import annotations

import hashlib
import os
from threading import Thread

BLOCK_SIZE = 2**20

_THREADS = min(4, os.cpu_count() or 1)
_WORTHWHILE = 4 * BLOCK_SIZE


def block_digests(data: bytes | memoryview) -> list[bytes]:
    """SHA-256 of each block of `BLOCK_SIZE` bytes, in order; the last block may be shorter."""
    view = memoryview(data)
    count = -(-len(view) // BLOCK_SIZE)
    digests = [b""] * count
    shares = _THREADS if len(view) >= _WORTHWHILE else 1

    def digest(share: int) -> None:
        for block in range(share, count, shares):
            start = block * BLOCK_SIZE
            digests[block] = hashlib.sha256(view[start : start + BLOCK_SIZE]).digest()

    others = [Thread(target=digest, args=(share,)) for share in range(1, shares)]
    started = 0
    try:
        for thread in others:
            thread.start()
            started += 1
    except RuntimeError:  # the process is ending, and there can be no more threads
        pass
    for share in (0, *range(started + 1, shares)):
        digest(share)
    for thread in others[:started]:
        thread.join()
    return digests
