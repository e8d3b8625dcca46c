"""The file format of cache entries and compiled models, as docs/formats.md specifies it.

An artifact is a header and parts; the header has a digest for each block of each part. In a cache,
the header is authenticated with the user's secret (HMAC-SHA-256); in a shipped file, it has a plain
SHA-256. Nothing is interpreted before its check, and nothing is executed or unpickled.
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
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO

from crosschip.ir import InputError, ModelFileError
from crosschip.ir.files import open_regular
from crosschip.ir.text import legible
from crosschip.ir.version import VERSION
from crosschip.runtime.artifact.digests import Digests

FORMAT_VERSION = 5
MAGIC = b"\x93CHIP\r\n\x1a"
BLOCK_SIZE = 2**24
"""The size of the checked blocks, in bytes: large, for the reason in `Digests`."""

_FORMER_MAGIC = b"\x93CHIPS\r\n"
"""The first bytes of compiled models and exported caches in earlier formats."""

_SECRET_ID_SIZE = 16
_UNAUTHENTICATED = bytes(_SECRET_ID_SIZE)
_PREAMBLE = struct.Struct(f"<8sII{_SECRET_ID_SIZE}s")
_SECRET_ID_OFFSET = _PREAMBLE.size - _SECRET_ID_SIZE
_DIGEST_SIZE = 32
_START = _PREAMBLE.size + _DIGEST_SIZE
_MAX_HEADER = 2**24
_ALIGNMENT = 64
_MIN_MAPPED = 2**20
"""The minimum size of a part for which the file is mapped, in bytes."""

Pieces = bytes | memoryview | Sequence[bytes | memoryview]
"""The bytes of a part, or buffers with the consecutive pieces."""

Part = Pieces | Callable[[], Pieces]
"""A part, or a function that reads it; called twice, so that parts need not all be in memory."""


class ArtifactError(ModelFileError):
    """An artifact is damaged, or not the expected one."""


class MissingArtifactError(ArtifactError):
    """The file of an artifact does not exist."""


def encode(
    kind: str,
    metadata: Mapping[str, object],
    parts: Sequence[Part],
    *,
    entry: Mapping[str, object] | None = None,
    secret: bytes | None = None,
) -> Iterator[bytes | memoryview]:
    """Return the content of an artifact in pieces: the preamble and header, then the parts.

    Args:
        kind: the kind of content.
        metadata: further fields of the header, as plain JSON values.
        parts: the parts, in order.
        entry: the cache entry, if the artifact is one.
        secret: the secret that authenticates the header; if `None`, it has a plain SHA-256.

    Raises:
        ModelFileError: the header would be too large, or a part has changed since it was first
            read.
    """
    descriptions = [_describe_part(_pieces(part)) for part in parts]
    header = json.dumps(
        {
            "kind": kind,
            "crosschip": VERSION,
            "entry": entry,
            "metadata": metadata,
            "parts": descriptions,
        }
    ).encode()
    header += b" " * (-(_START + len(header)) % _ALIGNMENT)
    if len(header) > _MAX_HEADER:
        raise ModelFileError(f"{kind}: is too large for a file: its header has more than 16 MiB")
    preamble = _PREAMBLE.pack(MAGIC, FORMAT_VERSION, len(header), _secret_id(secret))
    yield preamble + _header_digest(preamble + header, secret) + header
    for part, description in zip(parts, descriptions, strict=True):
        pieces = _pieces(part)
        if callable(part) and _describe_part(pieces) != description:
            raise ModelFileError(f"{kind}: has changed while it was written")
        yield from pieces


def looks_like_shipped_file(source: str | os.PathLike[str] | bytes) -> bool:
    """Return whether it begins like a shipped artifact of any version; nothing is verified."""
    beginning = _beginning(source, follow=True)
    return beginning.startswith(_FORMER_MAGIC) or (
        beginning.startswith(MAGIC) and not any(beginning[_SECRET_ID_OFFSET:])
    )


def looks_like_cache_entry(source: str | os.PathLike[str] | bytes) -> bool:
    """Return whether it begins like a signed artifact of a cache; the signature is not verified."""
    beginning = _beginning(source, follow=False)
    return beginning.startswith(MAGIC) and any(beginning[_SECRET_ID_OFFSET:])


class Artifact:
    """An artifact whose header has been checked; a context manager that closes its file.

    Attributes:
        location: the name in messages.
        kind: the kind of content.
        version: the version of crosschip that wrote it.
        entry: the fields of its cache entry; `None` for a shipped file.
        metadata: the `metadata` passed to `encode`.
        digest: the HMAC or SHA-256 of the header, in hexadecimal, which covers all content.
        count: the number of parts.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | BinaryIO,
        digest: str | None = None,
        *,
        secret: bytes | None = None,
        mapped: bool = False,
    ) -> None:
        """Read and check the header.

        Args:
            source: the path of a file, its content, or the file, open for reading bytes.
            digest: the required digest; any if `None`.
            secret: the secret that authenticates it; if `None`, it must be a shipped file. With a
                secret, symbolic links are not followed.
            mapped: whether large parts are views of the file, which must not change then.

        Raises:
            InputError: the source has the wrong type.
            MissingArtifactError: the file does not exist.
            ArtifactError: it is no artifact, is damaged, or has another digest.
        """
        self.location, self._file = _open(source, follow=secret is None)
        self._mapped = mapped
        self._lock = threading.Lock()
        try:
            self._total = self._file.seek(0, os.SEEK_END)
            self._file.seek(0)
            header = self._checked_header(digest, secret)
            self._read_header(header)
        except OSError as error:
            self._file.close()
            raise self.error(f"cannot be read ({error.strerror})") from None
        except BaseException:
            self._file.close()
            raise

    def _checked_header(self, digest: str | None, secret: bytes | None) -> bytes:
        beginning = self._file.read(_START)
        if beginning.startswith(_FORMER_MAGIC):
            raise self.error(
                "was written by an earlier crosschip, in a form that is no longer read; compile "
                "the model again (crosschip compile), or export the cache again"
            )
        if not beginning.startswith(MAGIC):
            raise self.error("is no file that crosschip has saved")
        if len(beginning) < _START:
            raise self.error("is cut off in its first bytes")
        _, version, size, secret_id = _PREAMBLE.unpack_from(beginning)
        if version != FORMAT_VERSION:
            writer = "an earlier" if version < FORMAT_VERSION else "a later"
            raise self.error(
                f"has format version {version}, not {FORMAT_VERSION}: {writer} crosschip wrote it, "
                f"so its content must be compiled again"
            )
        if secret_id != _secret_id(secret):
            raise self.error(_secret_mismatch(secret_id, secret))
        header = self._file.read(size) if size <= _MAX_HEADER else b""
        expected = _header_digest(beginning[: _PREAMBLE.size] + header, secret)
        if not hmac.compare_digest(beginning[_PREAMBLE.size :], expected):
            forged = "" if secret is None else " or forged"
            raise self.error(f"has a header that is damaged{forged}")
        self.digest = expected.hex()
        if digest is not None and not hmac.compare_digest(self.digest, str(digest).lower()):
            raise self.error(
                f"is another file than the one that was asked for: its digest is {self.digest}"
            )
        return header

    def _read_header(self, header: bytes) -> None:
        try:
            fields: Mapping[str, Any] = json.loads(header)
            self.kind, self.version = str(fields["kind"]), str(fields["crosschip"])
            self.entry: Mapping[str, Any] | None = fields["entry"]
            self.metadata: Mapping[str, Any] = dict(fields["metadata"])
            self._blocks = [list(part["blocks"]) for part in fields["parts"]]
            sizes = [_checked_size(part["size"]) for part in fields["parts"]]
            if any(-(-s // BLOCK_SIZE) != len(b) for s, b in zip(sizes, self._blocks, strict=True)):
                raise ValueError
        except (LookupError, TypeError, ValueError, RecursionError):
            raise self.error("has a header that is not laid out as it should be") from None
        self.count = len(sizes)
        self._ends = [_START + len(header)]
        for size in sizes:
            self._ends.append(self._ends[-1] + size)
        if self._ends[-1] != self._total:
            raise self.error(f"has {self._total} bytes where {self._ends[-1]} belong")

    def begin_part(self, number: int) -> Callable[[], bytes | memoryview]:
        """Begin to check a part on other threads; the returned function waits and returns it.

        Both raise `ArtifactError` if the part does not exist or is damaged.
        """
        if not 0 <= number < self.count:
            raise self.error(f"has no part {number}")
        content = self._read(self._ends[number], self._ends[number + 1])
        digests = Digests([content], BLOCK_SIZE)

        def end() -> bytes | memoryview:
            expected = self._blocks[number]
            for index, digest in enumerate(digests.result()):
                if digest.hex() != expected[index]:
                    raise self.error(f"has damaged bytes in block {index} of part {number}")
            return content

        return end

    def part(self, number: int) -> bytes | memoryview:
        """Return a checked part; a view of the file if that is mapped and the part is large.

        Raises:
            ArtifactError: the part does not exist or is damaged.
        """
        return self.begin_part(number)()

    def parts(self) -> Iterator[bytes | memoryview]:
        """Return an iterator over all parts, which reads each on demand."""
        return map(self.part, range(self.count))

    def _read(self, begin: int, end: int) -> bytes | memoryview:
        """Return bytes of the file, as a view if it is mapped and they are many."""
        try:
            if self._mapped and end - begin >= _MIN_MAPPED:
                view = mmap(self._file.fileno(), self._total, access=ACCESS_READ)
                return memoryview(view)[begin:end]
            with self._lock:
                self._file.seek(begin)
                content = self._file.read(end - begin)
        except OSError as error:
            raise self.error(f"cannot be read ({error.strerror})") from None
        if len(content) != end - begin:
            raise self.error("has been cut off while it was read")
        return content

    def error(self, problem: str) -> ArtifactError:
        """Return an error with the location and a problem."""
        return ArtifactError(f"{self.location}: {problem}")

    def close(self) -> None:
        """Close the file; views of it stay."""
        self._file.close()

    def __enter__(self) -> Artifact:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pieces(part: Part) -> Sequence[bytes | memoryview]:
    content = part() if callable(part) else part
    return [content] if isinstance(content, bytes | memoryview) else content


def _describe_part(pieces: Sequence[bytes | memoryview]) -> dict[str, Any]:
    digests = Digests(pieces, BLOCK_SIZE)
    return {"size": digests.size, "blocks": [digest.hex() for digest in digests.result()]}


def _header_digest(content: bytes, secret: bytes | None) -> bytes:
    if secret is None:
        return hashlib.sha256(content).digest()
    return hmac.digest(secret, content, "sha256")


def _secret_id(secret: bytes | None) -> bytes:
    """Return an identifier that does not reveal the secret; zeros for `None`."""
    if secret is None:
        return _UNAUTHENTICATED
    return hmac.digest(secret, b"crosschip cache secret", "sha256")[:_SECRET_ID_SIZE]


def _secret_mismatch(secret_id: bytes, secret: bytes | None) -> str:
    if secret is None:
        return "is an entry of a cache; load it by its token, or export the cache"
    if secret_id == _UNAUTHENTICATED:
        return "is not authenticated with a secret, as entries of a cache are"
    return "was written with another secret than yours"


def _checked_size(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no size")
    return value


def _beginning(source: str | os.PathLike[str] | bytes, *, follow: bool) -> bytes:
    """Return the preamble, or fewer bytes if the source is shorter."""
    if isinstance(source, bytes):
        return source[: _PREAMBLE.size]
    try:
        with BufferedReader(open_regular(source, follow=follow)) as file:
            return file.read(_PREAMBLE.size)
    except (OSError, ValueError):
        return b""


def _open(source: object, *, follow: bool) -> tuple[str, BinaryIO]:
    """Return the name of a source in messages, and an open file that the artifact closes."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "the file in memory", BytesIO(source)
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if isinstance(path, str) and "\0" not in path:
            location = legible(path)
            try:
                return location, BufferedReader(open_regular(path, follow=follow))
            except FileNotFoundError:
                raise MissingArtifactError(f"{location}: there is no such file") from None
            except OSError as error:
                raise ArtifactError(f"{location}: cannot be read ({error.strerror})") from None
    elif callable(getattr(source, "read", None)):
        content = source.read()  # type: ignore[attr-defined]  # the line before has seen it
        if isinstance(content, bytes):
            return "the file in memory", BytesIO(content)
        raise InputError(f"{source!r} is not open for reading bytes; open it with mode 'rb'")
    raise InputError(
        f"the file is given as a {type(source).__name__}, but must be a path, bytes, or a file "
        f"that is open for reading bytes"
    )
