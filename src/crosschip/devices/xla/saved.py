"""The saved form of compiled programs: rules and XLA's serialized executable."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

_SIZE = struct.Struct("<8sQ")
_MAGIC = b"CHIPXLA2"


def write(rules: Sequence[str], executable: bytes) -> bytes:
    """Return a program as bytes.

    Args:
        rules: the error messages, one per element of the last output.
        executable: XLA's serialized executable.
    """
    header = json.dumps(list(rules)).encode()
    return b"".join([_SIZE.pack(_MAGIC, len(header)), header, executable])


def read(saved: bytes) -> tuple[list[str], bytes]:
    """Read the result of `write`.

    Raises:
        ValueError, TypeError, struct.error: the data has another form.
    """
    magic, length = _SIZE.unpack_from(saved)
    if magic != _MAGIC:
        raise ValueError("it does not begin as a saved program does")
    end = _SIZE.size + length
    return list(map(str, json.loads(saved[_SIZE.size : end]))), bytes(saved[end:])
