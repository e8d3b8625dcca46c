"""A checksum at the end of saved programs, by which a device tells that one was damaged."""

from __future__ import annotations

import xxhash

from crosschip.ir import DeviceError

_SIZE = 8


def seal(*parts: bytes | memoryview) -> bytes:
    """What to put behind a saved program that these parts make up: eight bytes (XXH3)."""
    state = xxhash.xxh3_64()
    for part in parts:
        state.update(part)
    return state.digest()


def unsealed(saved: bytes) -> memoryview:
    """A saved program without the seal behind it.

    Raises:
        DeviceError: the seal does not hold.
    """
    content = memoryview(saved)[:-_SIZE]
    if saved[-_SIZE:] != seal(content):
        raise DeviceError("the saved program is damaged; compile the model again")
    return content
