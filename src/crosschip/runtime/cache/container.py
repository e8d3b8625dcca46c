"""A file of parts, as docs/formats.md specifies it: described by a header, checked by block.

Nothing in it is authenticated: who has a file needs to know whom it is from, or its digest.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedReader, BytesIO
from typing import Any, BinaryIO

from crosschip.ir import InputError, ModelFileError
from crosschip.ir.files import open_regular
from crosschip.ir.text import legible
from crosschip.runtime.cache.hashing import block_digests

FORMAT_VERSION = 1
MAGIC = b"\x93CHIPS\r\n"

_PREAMBLE = struct.Struct("<8sIIQ8x")
_DIGEST_SIZE = 32
_MAX_HEADER = 2**24


Part = bytes | Callable[[], bytes]
"""A part of a file, or what reads it: asked twice, so that not all parts are in memory at once."""


def assemble(kind: str, header: Mapping[str, object], parts: Sequence[Part]) -> Iterator[bytes]:
    """The file's content, piece by piece.

    Args:
        kind: what it is a file of.
        header: more about it, as JSON can say it.
        parts: in order.

    Raises:
        ModelFileError: there are so many parts, or so large, that the header does not hold them;
            or one has changed since it was first read.
    """
    about = [_described(_content(part)) for part in parts]
    described = json.dumps({**header, "kind": kind, "parts": about}).encode()
    if len(described) > _MAX_HEADER:
        raise ModelFileError(f"{kind}: is too large for a file: its header has more than 16 MiB")
    size = _PREAMBLE.size + _DIGEST_SIZE + len(described) + sum(part["size"] for part in about)
    preamble = _PREAMBLE.pack(MAGIC, FORMAT_VERSION, len(described), size)
    yield preamble + hashlib.sha256(preamble + described).digest() + described
    for part, expected in zip(parts, about, strict=True):
        content = _content(part)
        if not isinstance(part, bytes) and _described(content) != expected:
            raise ModelFileError(f"{kind}: has changed while it was written")
        yield content


def _content(part: Part) -> bytes:
    return part if isinstance(part, bytes) else part()


def _described(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "blocks": [digest.hex() for digest in block_digests(content)]}


def recognizes(source: str | os.PathLike[str] | bytes) -> bool:
    """Tell whether a file or its content begins as one of parts does."""
    if isinstance(source, bytes):
        return source.startswith(MAGIC)
    try:
        with open_regular(source) as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


class Container:
    """A file of parts that is being read; a context manager that closes it.

    Attributes:
        where: what messages call it.
        kind: what it is a file of.
        header: what was given to `assemble`.
        digest: SHA-256, in hexadecimal, over the header, and so over all that the file holds.
        count: how many parts it has.
    """

    def __init__(
        self, source: str | os.PathLike[str] | bytes | BinaryIO, digest: str | None = None
    ) -> None:
        """Read and check the header.

        Args:
            source: the path of a file, its content, or the file, open for reading bytes.
            digest: the digest that it must have; any if `None`.

        Raises:
            InputError: the source is something else.
            ModelFileError: it is no such file, it is damaged, or its digest is another.
        """
        self.where, self._file = _opened(source)
        self._lock = threading.Lock()
        try:
            self._read_header(digest)
        except BaseException:
            self._file.close()
            raise

    def _read_header(self, digest: str | None) -> None:
        total = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        preamble, sealed = self._file.read(_PREAMBLE.size), self._file.read(_DIGEST_SIZE)
        if preamble[: len(MAGIC)] != MAGIC:
            raise self.error("is no file that crosschip has saved")
        if len(sealed) < _DIGEST_SIZE:
            raise self.error("is cut off in its first bytes")
        _, version, header_size, size = _PREAMBLE.unpack(preamble)
        if version != FORMAT_VERSION:
            raise self.error(f"has format version {version}, not {FORMAT_VERSION}; save it again")
        if size != total or header_size > min(total, _MAX_HEADER):
            raise self.error(f"has {total} bytes, which is not what its beginning says")
        header = self._file.read(header_size)
        if hashlib.sha256(preamble + header).digest() != sealed:
            raise self.error("has damaged bytes in its header")
        self.digest = sealed.hex()
        if digest is not None and not hmac.compare_digest(self.digest, str(digest).lower()):
            raise self.error(
                f"is another file than the one that was asked for: its digest is {self.digest}"
            )
        try:
            self.header: Mapping[str, Any] = json.loads(header)
            self.kind = str(self.header["kind"])
            self._sizes = [_size(part["size"]) for part in self.header["parts"]]
            self._blocks = [list(part["blocks"]) for part in self.header["parts"]]
        except (LookupError, TypeError, ValueError, RecursionError):
            raise self.error("has a header that is not laid out as it should be") from None
        self._start = _PREAMBLE.size + _DIGEST_SIZE + header_size
        self.count = len(self._sizes)
        if self._start + sum(self._sizes) != total:
            raise self.error("has parts that are not of the sizes that its header says")

    def part(self, number: int) -> bytes:
        """A part, whole and checked.

        Raises:
            ModelFileError: it is not there, or is damaged.
        """
        if not 0 <= number < self.count:
            raise self.error(f"has no part {number}")
        try:
            with self._lock:
                self._file.seek(self._start + sum(self._sizes[:number]))
                content = self._file.read(self._sizes[number])
        except OSError as error:
            raise self.error(f"cannot be read ({error.strerror})") from None
        if [digest.hex() for digest in block_digests(content)] != self._blocks[number]:
            raise self.error(f"has damaged bytes in part {number}")
        return content

    def parts(self) -> Iterator[bytes]:
        """All parts, each read when it is asked for."""
        return map(self.part, range(self.count))

    def error(self, what: str) -> ModelFileError:
        """The error about the file of which something is true."""
        return ModelFileError(f"{self.where}: {what}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _size(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no size")
    return value


def _opened(source: object) -> tuple[str, BinaryIO]:
    """The name of a source in messages, and a file to read it from that is ours to close."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "the file in memory", BytesIO(source)
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if isinstance(path, str) and "\0" not in path:
            where = legible(path)
            try:
                return where, BufferedReader(open_regular(path))
            except OSError as error:
                raise ModelFileError(f"{where}: {_told(error)}") from None
    elif callable(getattr(source, "read", None)):
        content = source.read()  # type: ignore[attr-defined]  # the line before has seen it
        if isinstance(content, bytes):
            return "the file in memory", BytesIO(content)
        raise InputError(f"{source!r} is not open for reading bytes; open it with mode 'rb'")
    raise InputError(
        f"the file is given as a {type(source).__name__}, but must be a path, bytes, or a file "
        f"that is open for reading bytes"
    )


def _told(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return f"cannot be read ({error.strerror})"
