"""SHA-256 block by block, against the standard library's own of each block."""

from __future__ import annotations

import hashlib
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.artifact.digests import BLOCK_SIZE, Digests, block_digests


@pytest.mark.parametrize("size", [0, 1, BLOCK_SIZE, BLOCK_SIZE + 1, 4 * BLOCK_SIZE, 9_000_000])
def test_digests_are_of_each_block_in_order(size: int) -> None:
    data = os.urandom(size)
    blocks = [data[start : start + BLOCK_SIZE] for start in range(0, size, BLOCK_SIZE)]
    expected = [hashlib.sha256(block).digest() for block in blocks]
    assert block_digests(data) == block_digests(memoryview(data)) == expected


@pytest.mark.parametrize("granted", [0, 1])
def test_without_threads_the_digests_are_the_same(
    granted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at the end of a process, when no more can be started."""
    data = os.urandom(5 * BLOCK_SIZE + 7)
    expected = block_digests(data)
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def limited(thread: threading.Thread) -> None:
        if len(started) == granted:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr("crosschip.runtime.artifact.digests._THREADS", 4)
    monkeypatch.setattr(threading.Thread, "start", limited)
    assert block_digests(data) == expected
    assert len(started) == granted


@given(parts=st.lists(st.binary(max_size=40)), block_size=st.integers(1, 32))
def test_parts_are_divided_as_if_they_were_together(parts: list[bytes], block_size: int) -> None:
    together = b"".join(parts)
    digests = Digests(parts, block_size)
    assert digests.size == len(together)
    assert digests.result() == block_digests(together, block_size)
