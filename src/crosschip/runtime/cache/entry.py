"""The file of a cache entry, as docs/formats.md specifies it: authenticated, checked by block.

An entry is for a program, or for a whole compiled model that was kept under a token. Nothing in a
file is interpreted before the user's secret has authenticated it, and nothing in it is executed or
unpickled.
"""

from __future__ import annotations

import hmac
import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from io import BufferedReader, BytesIO
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO

from crosschip.ir.dataclass import dataclass
from crosschip.ir.files import open_regular
from crosschip.ir.reading import StrPath
from crosschip.ir.version import VERSION
from crosschip.runtime.cache.hashing import Digests

FORMAT_VERSION = 4
BLOCK_SIZE = 2**24
"""The size of the blocks that are checked, in bytes: few, as `Digests` explains."""

_ALIGNMENT = 64
_WORTH_MAPPING = 2**20
"""The least size of a program that is worth a mapping of its file, in bytes."""

_MAGIC = b"\x93CHIP\r\n\x1a"
_NAME_SIZE = 16
_PREAMBLE = struct.Struct(f"<8sII{_NAME_SIZE}s")
_TAG_SIZE = 32
_MAX_HEADER = 2**24
_OTHER_LAYOUT = "has a header that is not laid out as it should be"
"""The user's own secret wrote it, but not this code."""


class Damaged(Exception):
    """An entry's file is not what it should be; the text says how."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The model, device and options that an entry is for.

    Attributes:
        key: what it is found by (see `crosschip.runtime.cache.key`), or the token of a whole model.
        device: who compiled the program; several with commas between them, for a whole model.
        device_version: the version of the device that did; of crosschip, for a whole model.
        model: the name of the model that the program is a part of.
        operations: how many operations it runs.
        whole: whether it is a whole compiled model.
    """

    key: str
    device: str
    device_version: str
    model: str
    operations: int
    whole: bool = False


def head(entry: Entry, parts: Sequence[bytes | memoryview], secret: bytes) -> bytes:
    """The part of the entry's file that comes before the parts of the program."""
    digests = Digests(parts, BLOCK_SIZE)
    described = {
        **asdict(entry),
        "crosschip": VERSION,
        "size": digests.size,
        "blocks": [digest.hex() for digest in digests.result()],
    }
    header = json.dumps(described, sort_keys=True).encode()
    start = _PREAMBLE.size + _TAG_SIZE + len(header)
    header += b" " * (-start % _ALIGNMENT)
    preamble = _PREAMBLE.pack(_MAGIC, FORMAT_VERSION, len(header), _name(secret))
    return preamble + _tag(secret, preamble, header) + header


class Unchecked:
    """An entry whose header is authenticated, and whose program is being checked meanwhile.

    Attributes:
        entry: what it is for.
    """

    def __init__(self, file: BinaryIO, secret: bytes, *, mapped: bool = False) -> None:
        """Read all of it.

        Args:
            file: the entry's.
            secret: the user's own.
            mapped: whether a large program is a view of the file, which nobody may change.

        Raises:
            Damaged: the file does not begin as an entry that was written with this secret, or
                has another size than that says.
        """
        self.entry, fields = _described(_authenticated_header(file, secret))
        try:
            self._expected = list(fields["blocks"])
            self._program = _program(file, fields["size"], mapped=mapped)
        except (KeyError, TypeError, ValueError):
            raise Damaged(_OTHER_LAYOUT) from None
        if len(self._expected) != -(-len(self._program) // BLOCK_SIZE):
            raise Damaged(_OTHER_LAYOUT)
        self._digests = Digests([self._program], BLOCK_SIZE)

    def checked(self) -> bytes | memoryview:
        """The program, once it has been checked.

        Raises:
            Damaged: it is not the one that was written.
        """
        found = [digest.hex() for digest in self._digests.result()]
        if found != self._expected:
            same = [one == other for one, other in zip(found, self._expected, strict=True)]
            raise Damaged(f"has damaged bytes in block {same.index(False)}")
        return self._program


def begin(path: StrPath, secret: bytes, *, mapped: bool = False) -> Unchecked:
    """Read an entry, and begin to check its program.

    Raises:
        Damaged: as for `Unchecked`.
        FileNotFoundError: there is no file.
    """
    with _opened(path) as file:
        return Unchecked(file, secret, mapped=mapped)


def read(path: StrPath, secret: bytes) -> tuple[Entry, bytes]:
    """An entry and its program, authenticated and whole.

    Raises:
        Damaged: the file is not an entry that was written with this secret.
        FileNotFoundError: there is no file.
    """
    read = begin(path, secret)
    return read.entry, bytes(read.checked())


def read_content(content: bytes, secret: bytes) -> tuple[Entry, bytes]:
    """An entry and its program, as `read`, from the content of its file.

    Raises:
        Damaged: it is not an entry that was written with this secret.
    """
    read = Unchecked(BytesIO(content), secret)
    return read.entry, bytes(read.checked())


def is_content(content: bytes) -> bool:
    """Tell whether bytes say of themselves that they are an entry, whoever wrote it."""
    return content.startswith(_MAGIC)


def read_head(path: StrPath, secret: bytes) -> Entry:
    """An entry by its authenticated header alone; its program is not looked at.

    Raises:
        Damaged: the file does not begin as an entry that was written with this secret.
        FileNotFoundError: there is no file.
    """
    with _opened(path) as file:
        return _described(_authenticated_header(file, secret))[0]


def is_entry(path: StrPath) -> bool:
    """Tell whether a file says of itself that it is an entry, whoever wrote it."""
    try:
        with BufferedReader(open_regular(path, follow=False)) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


@contextmanager
def _opened(path: StrPath) -> Iterator[BinaryIO]:
    try:
        with BufferedReader(open_regular(path, follow=False)) as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(f"cannot be read ({error.strerror})") from None


def _described(header: bytes) -> tuple[Entry, Mapping[str, Any]]:
    """An entry, and all that its header says."""
    try:
        fields = json.loads(header)
        return Entry(**{name: fields[name] for name in Entry.__dataclass_fields__}), fields
    except (KeyError, TypeError, ValueError):
        raise Damaged(_OTHER_LAYOUT) from None


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


def _program(file: BinaryIO, size: int, *, mapped: bool) -> bytes | memoryview:
    """The bytes behind the header, of which there must be so many.

    Of a file that is mapped, no page is copied, and none read before somebody looks at it.
    """
    start = file.tell()
    end = file.seek(0, os.SEEK_END)
    if end - start != size:
        raise Damaged(f"has {end - start} bytes of program where {size} belong")
    if mapped and size >= _WORTH_MAPPING:
        return memoryview(mmap(file.fileno(), end, access=ACCESS_READ))[start:]
    file.seek(start)
    return file.read(size)


def _tag(secret: bytes, preamble: bytes, header: bytes) -> bytes:
    return hmac.digest(secret, preamble + header, "sha256")


def _name(secret: bytes) -> bytes:
    """By which an entry says what secret it was written with, without giving it away."""
    return hmac.digest(secret, b"crosschip cache secret", "sha256")[:_NAME_SIZE]
