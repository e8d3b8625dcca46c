"""The form in which compiled programs are saved: the rules, and XLA's own bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

_SIZE = struct.Struct("<8sQ")
_MAGIC = b"CHIPXLA2"


def write(rules: Sequence[str], executable: bytes) -> bytes:
    """A program as bytes.

    Args:
        rules: what must hold in a run, a sentence for each element of the last output.
        executable: XLA's bytes.
    """
    header = json.dumps(list(rules)).encode()
    return b"".join([_SIZE.pack(_MAGIC, len(header)), header, executable])


def read(saved: bytes) -> tuple[list[str], bytes]:
    """Read what `write` was given.

    Raises:
        ValueError, TypeError, struct.error: they are other bytes.
    """
    magic, length = _SIZE.unpack_from(saved)
    if magic != _MAGIC:
        raise ValueError("it does not begin as a saved program does")
    place = _SIZE.size + length
    return list(map(str, json.loads(saved[_SIZE.size : place]))), bytes(saved[place:])
