"""The file of a cache entry, as docs/formats.md specifies it: authenticated, checked by block.

Nothing in a file is interpreted before the user's secret has authenticated it, and nothing in it
is executed or unpickled.
"""

from __future__ import annotations

import hmac
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from crosschip.ir.files import open_regular
from crosschip.runtime.cache.hashing import block_digests

FORMAT_VERSION = 2

_MAGIC = b"\x93CHIP\r\n\x1a"
_NAME_SIZE = 16
_PREAMBLE = struct.Struct(f"<8sII{_NAME_SIZE}s")
_TAG_SIZE = 32
_MAX_HEADER = 2**24


class Damaged(Exception):
    """An entry's file is not what it should be; the text says how."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The model, device and options that an entry is for.

    Attributes:
        key: what it is found by (see `crosschip.runtime.cache.key`).
        device: who compiled the program.
        device_version: the version of the device that did.
        model: the name of the model that the program is a part of.
        operations: how many operations it runs.
    """

    key: str
    device: str
    device_version: str
    model: str
    operations: int


def head(entry: Entry, program: bytes, secret: bytes) -> bytes:
    """The part of the entry's file that comes before the program."""
    described = {
        **asdict(entry),
        "crosschip": version("crosschip"),
        "size": len(program),
        "blocks": [digest.hex() for digest in block_digests(program)],
    }
    header = json.dumps(described, sort_keys=True).encode()
    preamble = _PREAMBLE.pack(_MAGIC, FORMAT_VERSION, len(header), _name(secret))
    return preamble + _tag(secret, preamble, header) + header


def read(path: Path, secret: bytes) -> tuple[Entry, bytes]:
    """An entry and its program, authenticated and whole.

    Raises:
        Damaged: the file is not an entry that was written with this secret.
        FileNotFoundError: there is no file.
    """
    try:
        with BufferedReader(open_regular(path, follow=False)) as file:
            header = _authenticated_header(file, secret)
            try:
                fields = json.loads(header)
                entry = Entry(**{name: fields[name] for name in Entry.__dataclass_fields__})
                return entry, _checked_program(file, fields)
            except (KeyError, TypeError, ValueError):
                # The user's own secret wrote this, but not this code.
                raise Damaged("has a header that is not laid out as it should be") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"cannot be read ({error.strerror})") from None


def _authenticated_header(file: BinaryIO, secret: bytes) -> bytes:
    preamble = file.read(_PREAMBLE.size)
    tag = file.read(_TAG_SIZE)
    if len(tag) < _TAG_SIZE:
        raise Damaged("is cut off in its first bytes")
    magic, format_version, size, name = _PREAMBLE.unpack(preamble)
    if magic != _MAGIC:
        raise Damaged("is not a cache entry")
    if format_version != FORMAT_VERSION:
        raise Damaged(f"has format version {format_version}, not {FORMAT_VERSION}")
    if name != _name(secret):
        raise Damaged("was written with another secret than yours")
    header = file.read(size) if size <= _MAX_HEADER else b""
    if not hmac.compare_digest(tag, _tag(secret, preamble, header)):
        raise Damaged("has a header that is damaged or forged")
    return header


def _checked_program(file: BinaryIO, fields: Mapping[str, Any]) -> bytes:
    size, expected = fields["size"], fields["blocks"]
    actual = os.fstat(file.fileno()).st_size - file.tell()
    if actual != size:
        raise Damaged(f"has {actual} bytes of program where {size} belong")
    program = file.read(size)
    digests = [digest.hex() for digest in block_digests(program)]
    if digests != expected:
        same = [a == b for a, b in zip(digests, expected, strict=True)]
        raise Damaged(f"has damaged bytes in block {same.index(False)}")
    return program


def _tag(secret: bytes, preamble: bytes, header: bytes) -> bytes:
    return hmac.digest(secret, preamble + header, "sha256")


def _name(secret: bytes) -> bytes:
    """By which an entry says what secret it was written with, without giving it away."""
    return hmac.digest(secret, b"crosschip cache secret", "sha256")[:_NAME_SIZE]
