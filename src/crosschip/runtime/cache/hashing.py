"""SHA-256 of many bytes: block by block, large data on several threads."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from threading import Thread

BLOCK_SIZE = 2**20

_THREADS = min(4, os.cpu_count() or 1)
_WORTHWHILE = 4 * 2**20
"""The least number of bytes that are worth another thread."""


class Digests:
    """SHA-256 of each block of data, which other threads begin with at once if there is much.

    A thread that has done a block waits until the interpreter is free, which it is not while a
    large library is being imported; so larger blocks are better for what is done meanwhile.

    Args:
        data: what is divided.
        block_size: in bytes; the last block may be shorter.
    """

    def __init__(self, data: bytes | memoryview, block_size: int = BLOCK_SIZE) -> None:
        self._view = memoryview(data)
        self._block_size = block_size
        starts = range(0, len(self._view), block_size)
        self._left = deque(enumerate(starts))
        self._digests = [b""] * len(starts)
        self._helpers: list[Thread] = []
        if len(self._view) < _WORTHWHILE:
            return
        for _ in range(min(max(1, _THREADS - 1), len(starts))):
            helper = Thread(target=self._work, name="crosschip hashing", daemon=True)
            try:
                helper.start()
            except RuntimeError:  # the process is ending, and there can be no more threads
                return
            self._helpers.append(helper)

    def result(self) -> list[bytes]:
        """The digests, in order, once there are all; this thread does what no other has begun."""
        self._work()
        for helper in self._helpers:
            helper.join()
        return self._digests

    def _work(self) -> None:
        while True:
            try:
                block, start = self._left.popleft()
            except IndexError:
                return
            part = self._view[start : start + self._block_size]
            self._digests[block] = hashlib.sha256(part).digest()


def block_digests(data: bytes | memoryview, block_size: int = BLOCK_SIZE) -> list[bytes]:
    """SHA-256 of each block of data, in order; the last block may be shorter."""
    return Digests(data, block_size).result()
