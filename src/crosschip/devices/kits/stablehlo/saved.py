"""Compiled functions as bytes: a magic word, the rules' messages and the compiler's own data.

size  content, all numbers little-endian
8     the magic word of the device
8     the size of the messages
...   the messages, JSON: a list of strings
...   the compiler's data
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

_HEAD = struct.Struct("<8sQ")


def write_program(magic: bytes, rules: Sequence[str], executable: bytes) -> bytes:
    """Return a program as bytes.

    Args:
        magic: the magic word of the device, 8 bytes.
        rules: the error messages, one per element of the last output.
        executable: the compiler's data.
    """
    messages = json.dumps(list(rules)).encode()
    return b"".join([_HEAD.pack(magic, len(messages)), messages, executable])


def read_program(magic: bytes, saved: bytes | memoryview) -> tuple[list[str], memoryview]:
    """Read the result of `write_program`.

    Raises:
        ValueError, TypeError, struct.error: the data has another form.
    """
    word, length = _HEAD.unpack_from(saved)
    if word != magic:
        raise ValueError("it does not begin as a saved program does")
    view = memoryview(saved)[_HEAD.size :]
    return list(map(str, json.loads(bytes(view[:length])))), view[length:]
