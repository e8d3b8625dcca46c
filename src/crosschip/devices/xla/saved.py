"""The form in which compiled programs are saved: a header, and XLA's own bytes for each shape."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass

_SIZE = struct.Struct("<8sQ")
_MAGIC = b"CHIPXLA1"


@dataclass(frozen=True, slots=True)
class Record:
    """A program for one set of input shapes.

    Attributes:
        shapes: those of the inputs.
        rules: what must hold in a run, a sentence for each element of the last output.
        size: how many bytes of XLA's it is.
    """

    shapes: tuple[tuple[int, ...], ...]
    rules: tuple[str, ...]
    size: int


def write(records: Sequence[Record], executables: Sequence[bytes]) -> bytes:
    """Programs as bytes."""
    header = json.dumps([asdict(record) for record in records]).encode()
    return b"".join([_SIZE.pack(_MAGIC, len(header)), header, *executables])


def read(saved: bytes) -> list[tuple[Record, memoryview]]:
    """What `write` was given.

    Raises:
        ValueError, TypeError, KeyError, struct.error: they are other bytes.
    """
    stored = memoryview(saved)
    magic, length = _SIZE.unpack_from(stored)
    if magic != _MAGIC:
        raise ValueError("it does not begin as a saved program does")
    place = _SIZE.size + length
    found = []
    for plain in json.loads(bytes(stored[_SIZE.size : place])):
        shapes = tuple(tuple(map(int, shape)) for shape in plain["shapes"])
        record = Record(shapes, tuple(map(str, plain["rules"])), int(plain["size"]))
        found.append((record, stored[place : place + record.size]))
        place += record.size
    if place != len(stored):
        raise ValueError(f"it has {len(stored)} bytes where {place} belong")
    return found
