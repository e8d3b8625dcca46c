"""SHA-256 block by block, against the standard library's own of each block."""

from __future__ import annotations

import hashlib
import os

import pytest

from crosschip.runtime.cache.hashing import BLOCK_SIZE, block_digests


@pytest.mark.parametrize("size", [0, 1, BLOCK_SIZE, BLOCK_SIZE + 1, 4 * BLOCK_SIZE, 9_000_000])
def test_digests_are_of_each_block_in_order(size: int) -> None:
    data = os.urandom(size)
    blocks = [data[start : start + BLOCK_SIZE] for start in range(0, size, BLOCK_SIZE)]
    expected = [hashlib.sha256(block).digest() for block in blocks]
    assert block_digests(data) == block_digests(memoryview(data)) == expected
