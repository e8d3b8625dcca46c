"""The cache of compiled programs: one file an entry, checked block by block when read.

The file format is specified in docs/formats.md. Nothing in a file is executed or unpickled; one
that is not exactly what it should be is worth a warning and a compilation, never an answer.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import platformdirs
import xxhash

from crosschip.ir import CacheError

FORMAT_VERSION = 1
SUFFIX = ".chip"
BLOCK_SIZE = 2**20

_MAGIC = b"\x93CHIP\r\n\x1a"
_PREAMBLE = struct.Struct("<8sIIQ")
_MAX_HEADER = 2**24
_UNFINISHED = ".part"
_ABANDONED_SECONDS = 3600

logger = logging.getLogger("crosschip.cache")


class Damaged(Exception):
    """An entry's file is not what it should be; the text says how."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What an entry is for.

    Attributes:
        key: what it is found by (see `crosschip.runtime.key`).
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


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry as it lies in the folder.

    Attributes:
        path: its file.
        size: of the file, in bytes.
        used: when it was last read or written, in seconds since 1970.
        entry: what it is for; `None` if the file is damaged.
        problem: what is wrong with it; empty if nothing is.
    """

    path: Path
    size: int
    used: float
    entry: Entry | None
    problem: str


class Cache:
    """A folder of entries. Any number of processes may use it at once.

    Args:
        folder: where; made if it is not there.

    Raises:
        CacheError: the folder cannot be made or written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise CacheError(
                f"cache folder {folder}: cannot be written to ({error.strerror}); pass another "
                f"folder, set CROSSCHIP_CACHE_DIR, or turn the cache off (cache=False)"
            ) from None

    def read(self, entry: Entry) -> bytes | None:
        """The program that was stored; `None`, after a warning if there is cause, if there is none.

        A file that is damaged, or is of another key, version or device, is removed.
        """
        path = self._path(entry.key)
        try:
            found, program = _read(path)
            _compare(found, entry)
        except FileNotFoundError:
            return None
        except (Damaged, OSError) as error:
            self.discard(entry, str(error))
            return None
        with suppress(OSError):  # removed meanwhile, or somebody else's file: it is good anyway
            os.utime(path)
        return program

    def write(self, entry: Entry, program: bytes) -> None:
        """Store a program under a temporary name, then rename it, so that no reader sees half."""
        path = self._path(entry.key)
        try:
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=_UNFINISHED)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_head(entry, program))
                    file.write(program)
                os.replace(temporary, path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError as error:
            logger.warning("cache entry %s: could not be written (%s)", path, error.strerror)

    def discard(self, entry: Entry, why: str) -> None:
        """Warn about an entry that cannot be used, and remove it."""
        path = self._path(entry.key)
        logger.warning("cache entry %s: %s; compiling again", path, why)
        _remove(path)

    def listing(self) -> list[Listed]:
        """Every entry, the most recently used first."""
        found = map(_listed, self.folder.glob(f"*{SUFFIX}"))
        return sorted(filter(None, found), key=lambda listed: -listed.used)

    def prune(self, limit: float) -> int:
        """Remove damaged entries, and the least recently used until the rest fit.

        What a process that died while writing left behind goes too, once it is an hour old.

        Args:
            limit: how many bytes the entries may take together.

        Returns:
            How many were removed.
        """
        removed = total = 0
        for listed in self.listing():
            total += listed.size if listed.entry else 0
            if listed.entry is None or total > limit:
                removed += _remove(listed.path)
        for left in self.folder.glob(f".*{_UNFINISHED}"):
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                    left.unlink()
        return removed

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"


def default_folder() -> Path:
    """`CROSSCHIP_CACHE_DIR`, or the platform's folder for caches."""
    configured = os.environ.get("CROSSCHIP_CACHE_DIR")
    return Path(configured) if configured else platformdirs.user_cache_path("crosschip")


def _head(entry: Entry, program: bytes) -> bytes:
    view = memoryview(program)
    blocks = [
        xxhash.xxh3_64_hexdigest(view[start : start + BLOCK_SIZE])
        for start in range(0, len(program), BLOCK_SIZE)
    ]
    described = {
        **asdict(entry),
        "crosschip": version("crosschip"),
        "size": len(program),
        "block_size": BLOCK_SIZE,
        "blocks": blocks,
    }
    header = json.dumps(described, sort_keys=True).encode()
    digest = xxhash.xxh3_64_intdigest(header)
    return _PREAMBLE.pack(_MAGIC, FORMAT_VERSION, len(header), digest) + header


def _read(path: Path) -> tuple[Entry, bytes]:
    """An entry and its program, both checked; `Damaged` if anything is amiss."""
    with path.open("rb") as file:
        preamble = file.read(_PREAMBLE.size)
        if len(preamble) < _PREAMBLE.size:
            raise Damaged("is cut off in its first bytes")
        magic, format_version, size, digest = _PREAMBLE.unpack(preamble)
        if magic != _MAGIC:
            raise Damaged("is not a cache entry")
        if format_version != FORMAT_VERSION:
            raise Damaged(f"has format version {format_version}, not {FORMAT_VERSION}")
        header = file.read(size) if size <= _MAX_HEADER else b""
        if len(header) != size or xxhash.xxh3_64_intdigest(header) != digest:
            raise Damaged("has a damaged header")
        try:
            fields = json.loads(header)
            program = file.read(max(0, fields["size"]) + 1)
            _check_blocks(program, fields)
            return Entry(**{name: fields[name] for name in Entry.__dataclass_fields__}), program
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, MemoryError):
            # The checksum held, so this was written by something else that calls itself crosschip.
            raise Damaged("has a header that is not laid out as it should be") from None


def _listed(path: Path) -> Listed | None:
    """What a file holds; `None` if it has been removed meanwhile."""
    try:
        about = path.stat()
    except OSError:
        return None
    entry, problem = None, ""
    try:
        entry = _read(path)[0]
    except (Damaged, OSError) as error:
        problem = str(error)
    return Listed(path, about.st_size, about.st_mtime, entry, problem)


def _remove(path: Path) -> bool:
    """Remove a file, and say whether it is gone because of it."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _check_blocks(program: bytes, fields: dict[str, Any]) -> None:
    if len(program) != fields["size"]:
        raise Damaged(f"has {len(program)} bytes of program where {fields['size']} belong")
    view = memoryview(program)
    step = fields["block_size"]
    if len(fields["blocks"]) != -(-len(program) // step):
        raise Damaged("has blocks without a checksum")
    for index, digest in enumerate(fields["blocks"]):
        if xxhash.xxh3_64_hexdigest(view[index * step : (index + 1) * step]) != digest:
            raise Damaged(f"has damaged bytes in block {index}")


def _compare(found: Entry, wanted: Entry) -> None:
    if found.device_version != wanted.device_version or found.device != wanted.device:
        raise Damaged(
            f"was made by {found.device} {found.device_version}, "
            f"not {wanted.device} {wanted.device_version}"
        )
    if found.key != wanted.key:
        raise Damaged(f"is for another model ({found.model})")
