"""SHA-256 of many bytes: block by block, large data on several threads."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Sequence
from threading import Thread

BLOCK_SIZE = 2**20

_THREADS = min(4, os.cpu_count() or 1)
_WORTHWHILE = 4 * 2**20
"""The minimum number of bytes for which further threads are started."""


class Digests:
    """SHA-256 of each block of data; of large data, other threads compute it from now on.

    After each block a thread needs the interpreter's lock, which the import of a large library
    holds for long. So large blocks are better if other work is done at the same time.

    Args:
        parts: the data, in consecutive pieces.
        block_size: the size of a block in bytes; the last block may be shorter.

    Attributes:
        size: the size of the data, in bytes.
    """

    def __init__(self, parts: Sequence[bytes | memoryview], block_size: int = BLOCK_SIZE) -> None:
        views = [memoryview(part).cast("B") for part in parts if memoryview(part).nbytes]
        self.size = sum(map(len, views))
        blocks = _split(views, block_size)
        self._pending = deque(enumerate(blocks))
        self._digests = [b""] * len(blocks)
        self._helpers: list[Thread] = []
        if self.size < _WORTHWHILE:
            return
        for _ in range(min(max(1, _THREADS - 1), len(blocks))):
            helper = Thread(target=self._work, name="crosschip hashing", daemon=True)
            try:
                helper.start()
            except RuntimeError:  # the process is ending, and there can be no more threads
                return
            self._helpers.append(helper)

    def result(self) -> list[bytes]:
        """Return the digests in order; this thread computes those that no other has begun."""
        self._work()
        for helper in self._helpers:
            helper.join()
        return self._digests

    def _work(self) -> None:
        while True:
            try:
                number, block = self._pending.popleft()
            except IndexError:
                return
            digest = hashlib.sha256()
            for view in block:
                digest.update(view)
            self._digests[number] = digest.digest()


def _split(views: Iterable[memoryview], block_size: int) -> list[list[memoryview]]:
    """Divide concatenated views into blocks, each a list of the slices of views in it."""
    blocks: list[list[memoryview]] = []
    remaining = 0
    for view in views:
        begin = 0
        while begin < len(view):
            if not remaining:
                blocks.append([])
                remaining = block_size
            piece = view[begin : begin + remaining]
            blocks[-1].append(piece)
            begin += len(piece)
            remaining -= len(piece)
    return blocks


def block_digests(data: bytes | memoryview, block_size: int = BLOCK_SIZE) -> list[bytes]:
    """Return the SHA-256 of each block of data, in order; the last block may be shorter."""
    return Digests([data], block_size).result()
