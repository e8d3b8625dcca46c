"""The cache of compiled programs in a folder of bounded size, with one file per entry.

A program is loaded only if the user's secret authenticates it, and stored only in a folder that no
other user can write to. docs/formats.md specifies the folder, the files and their trust.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

from crosschip.ir import CacheError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.file_queries import StrPath
from crosschip.ir.files import open_own
from crosschip.ir.text import legible
from crosschip.runtime.artifact.atomic_files import (
    remove_abandoned_files,
    temporary_files,
    write_atomically,
)
from crosschip.runtime.artifact.container import (
    Artifact,
    ArtifactError,
    MissingArtifactError,
    Part,
    encode,
    looks_like_cache_entry,
)
from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.secret import SIZE as SECRET_SIZE
from crosschip.runtime.cache.secret import NoRoomError, is_full, secret
from crosschip.runtime.plain import from_plain, to_plain

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

KIND = "cache entry"
"""The kind of an artifact with one part of any content."""

SUFFIX = ".chip"
MODEL_SUFFIX = ".nnc"
"""The suffix of whole models, whose name is their token; NNAdapter's."""

DEFAULT_LIMIT = 2 * 2**30

_ENTRY = rf"[0-9a-f]{{64}}\{SUFFIX}|[^.].*\{MODEL_SUFFIX}"
_UNFINISHED = ".unfinished"
_LEDGER = ".ledger"
_LEDGER_UNIT = 2**16
_SIZE = r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([KMGT]?)(?:i?B)?"
_ADVICE = "pass another folder, set CROSSCHIP_CACHE_DIR, or turn the cache off (cache=False)"

logger = logging.getLogger("crosschip.cache")


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """The file of an entry in the folder.

    Attributes:
        path: the path of the file.
        size: the size of the file, in bytes.
        used: the time of the last read or write, in seconds since 1970.
        entry: the entry; `None` if the file is damaged.
        problem: the damage, in words; empty if there is none.
    """

    path: str
    size: int
    used: float
    entry: Entry | None
    problem: str


class Cache:
    """A folder of entries, which any number of threads and processes may use at once.

    The folder is read-only if it cannot be written to, belongs to another user, or is writable by
    others. Nothing is stored if the folder or the secret does not exist and the disk is full or
    read-only. Opening the folder removes files that killed processes left, and waits for entries
    that this process is writing.

    Attributes:
        limit: the maximum size of all entries in bytes.
    """

    def __init__(self, folder: StrPath, limit: int | None = None) -> None:
        """Open a folder.

        Args:
            folder: the folder, which is created for the user alone if it does not exist.
            limit: the maximum size in bytes; by default `CROSSCHIP_CACHE_SIZE`, or 2 GiB.

        Raises:
            CacheError: the folder cannot be created, the user's secret cannot be used, or
                `CROSSCHIP_CACHE_SIZE` is no size.
        """
        background_writer.wait()
        self._folder = os.path.expanduser(os.fspath(folder))
        self.limit = default_limit() if limit is None else limit
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._read_only = _read_only_reason(self._folder)
            if not self._read_only:
                remove_abandoned_files(self._unfinished)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self._read_only = f"cannot be made ({why})"
            if not isinstance(error, OSError) or not is_full(error):
                raise CacheError(
                    f"cache folder {legible(self._folder)}: cannot be written to ({why}); {_ADVICE}"
                ) from None
        try:
            self._secret = secret()
        except NoRoomError as error:
            self._read_only = str(error)
            self._secret = os.urandom(SECRET_SIZE)  # which authenticates no entry

    @property
    def folder(self) -> Path:
        """The folder of the entries."""
        # Imported late: the import takes long, and the runtime does not need it.
        from pathlib import Path

        return Path(self._folder)

    def read(self, entry: Entry) -> bytes | None:
        """Return the bytes of an entry; `None` if it does not exist or is unusable.

        A file that is damaged, not authentic, or of another key, version or device is removed with
        a warning.
        """
        content = self.begin_reading(entry, mapped=False)()
        return None if content is None else bytes(content)

    def begin_reading(
        self, entry: Entry, *, mapped: bool = True
    ) -> Callable[[], bytes | memoryview | None]:
        """Begin to check an entry on other threads; the returned function waits and returns it.

        Large content is a view of the file if `mapped`, since files are replaced atomically. In a
        folder that others can write to it is copied, because they could change it after the check.
        """
        mapped = mapped and os.name == "posix" and not self._read_only
        artifact = self.open(entry, mapped=mapped)
        if artifact is None:
            return lambda: None
        with artifact:
            end = self._discard_if_damaged(entry, partial(artifact.begin_part, 0))
        return lambda: end and self._discard_if_damaged(entry, end)

    def _discard_if_damaged(self, entry: Entry, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except ArtifactError as error:
            self.discard(entry, str(error))
            return None

    def open(self, entry: Entry, *, mapped: bool = False) -> Artifact | None:
        """Return the artifact of an entry, to be closed by the caller; `None` as for `read`."""
        path = self.path(entry)
        try:
            artifact = Artifact(path, secret=self._secret, mapped=mapped)
            _check_entry(artifact, entry)
        except MissingArtifactError:
            return None
        except ArtifactError as error:
            self.discard(entry, str(error))
            return None
        if not self._read_only:
            with suppress(OSError):  # removed by another process, but the open file is valid
                os.utime(path)
        return artifact

    def write(self, entry: Entry, content: bytes) -> None:
        """Store or replace the bytes of an entry atomically.

        The least recently used entries are removed if the limit is exceeded. A failure is a
        warning.
        """
        self.write_artifact(entry, KIND, {}, [content])

    def write_artifact(
        self, entry: Entry, kind: str, metadata: Mapping[str, object], parts: Sequence[Part]
    ) -> None:
        """Store an artifact as `write` does; the arguments are as for `container.encode`."""
        path = self.path(entry)
        if self._read_only:
            _warn_read_only(self._folder, self._read_only)
            return
        pieces = list(encode(kind, metadata, parts, entry=to_plain(entry), secret=self._secret))
        size = sum(memoryview(piece).nbytes for piece in pieces)
        if size > self.limit:
            takes, allowed = (f"{number / 2**20:.1f} MB" for number in (size, self.limit))
            logger.warning(
                "cache entry %s: not kept, as it takes %s of the %s that the cache may; raise "
                "CROSSCHIP_CACHE_SIZE or cache_size", legible(path), takes, allowed,
            )  # fmt: skip
            return
        try:
            remove_abandoned_files(self._unfinished)
            self._evict(size)
            os.makedirs(self._unfinished, mode=0o700, exist_ok=True)
            write_atomically(path, pieces, self._unfinished)
        except OSError as error:
            logger.warning(
                "cache entry %s: could not be written (%s)", legible(path), error.strerror
            )

    def discard(self, entry: Entry, why: str) -> None:
        """Warn about an entry that cannot be used, and remove it."""
        path = self.path(entry)
        why = why.removeprefix(f"{legible(path)}: ")
        logger.warning("cache entry %s: %s; compiling again", legible(path), legible(why))
        if not self._read_only:
            _remove(path)

    def listing(self, *, whole: bool = True) -> list[ListedEntry]:
        """Return all entries, the most recently used first.

        Args:
            whole: whether to check all bytes of each entry, not only its header.
        """
        entries = []
        for path, status in self._entries():
            entry, problem = None, ""
            try:
                with Artifact(path, secret=self._secret) as artifact:
                    if whole:
                        for _ in artifact.parts():
                            pass
                    entry = _entry_of(artifact)
            except MissingArtifactError:  # removed by another process
                continue
            except ArtifactError as error:
                problem = str(error).removeprefix(f"{legible(path)}: ")
            entries.append(ListedEntry(path, status.st_size, status.st_mtime, entry, problem))
        return sorted(entries, key=lambda listed: -listed.used)

    def unfinished_nbytes(self) -> int:
        """Return the bytes of the files that are being written."""
        return sum(status.st_size for _, status in temporary_files(self._unfinished))

    def prune(self, limit: float) -> int:
        """Remove damaged entries, abandoned files, and the least recently used entries.

        Args:
            limit: the maximum size of the remaining entries in bytes.

        Returns:
            The number of removed entries.

        Raises:
            CacheError: the folder is read-only.
        """
        self.check_writable()
        remove_abandoned_files(self._unfinished)
        removed = total = 0
        for listed in self.listing():
            total += listed.size if listed.entry else 0
            if listed.entry is None or total > limit:
                removed += _remove(listed.path)
        return removed

    def remove(self, path: str) -> bool:
        """Remove the file of an entry; return whether it existed.

        Raises:
            CacheError: the folder is read-only.
        """
        self.check_writable()
        return _remove(path)

    def check_writable(self) -> None:
        """Raise CacheError if the folder is read-only."""
        if self._read_only:
            raise CacheError(
                f"cache folder {legible(self._folder)}: {self._read_only}; nothing is changed"
            )

    def path(self, entry: Entry) -> str:
        """Return the path of an entry, whether it exists or not."""
        name = f"{entry.key}{MODEL_SUFFIX if entry.whole else SUFFIX}"
        return os.path.join(self._folder, name)

    @property
    def _unfinished(self) -> str:
        return os.path.join(self._folder, _UNFINISHED)

    def _entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """Return the files of entries, without files of other programs in the folder."""
        for path, status in _files(self._folder, _ENTRY):
            if path.endswith(SUFFIX) or looks_like_cache_entry(path):
                yield path, status

    def _evict(self, size: int) -> None:
        """Remove the least recently used entries if `size` more bytes exceed the limit.

        The folder is listed only if the ledger, an upper bound of the size, exceeds the limit. Then
        an eighth of the limit is freed, so that listings are rare.
        """
        ledger = os.path.join(self._folder, _LEDGER)
        if _add_to_ledger(ledger, size) <= self.limit:
            return
        with suppress(FileNotFoundError):
            os.unlink(ledger)  # so that concurrent writers list the entries too
        entries = list(self._entries())
        total = sum(status.st_size for _, status in entries) + self.unfinished_nbytes()
        target = max(0, self.limit - self.limit // 8 - size)
        for path, status in sorted(entries, key=lambda pair: pair[1].st_mtime):
            if total <= target:
                break
            if _remove(path):
                total -= status.st_size
        descriptor = open_own(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(descriptor, "ab") as file:
            file.write(bytes(_units(total + size)))


def default_limit() -> int:
    """Return `CROSSCHIP_CACHE_SIZE` in bytes, or `DEFAULT_LIMIT`.

    Raises:
        CacheError: the variable is no size.
    """
    configured = os.environ.get("CROSSCHIP_CACHE_SIZE")
    if not configured:
        return DEFAULT_LIMIT
    size = re.fullmatch(_SIZE, configured.strip(), re.IGNORECASE)
    if size is None:
        raise CacheError(
            f"CROSSCHIP_CACHE_SIZE is {configured!r}, which is no size; write a number of bytes, "
            f"or a number with K, M, G or T, as in 500M"
        )
    number, unit = size.groups()
    return int(float(number) * 1024 ** " KMGT".index(unit.upper() or " "))


def _read_only_reason(folder: str) -> str:
    """Return why a folder is read-only; empty if it is not."""
    status = os.stat(folder)
    if hasattr(os, "geteuid"):
        if status.st_uid != os.geteuid():
            return "belongs to another user, so it is only read"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return "others can write to it, so it is only read (chmod go-w makes it yours alone)"
    try:
        _try_to_write(folder)
    except OSError as error:
        return f"cannot be written to ({error.strerror}), so it is only read"
    return ""


def _try_to_write(folder: str) -> None:
    """Create an unnamed file in a folder and discard it; raise OSError if that fails."""
    flags = getattr(os, "O_TMPFILE", 0)
    try:
        os.close(os.open(folder, flags | os.O_WRONLY, 0o600))
    except OSError as error:
        if flags and error.errno not in (errno.EISDIR, errno.EOPNOTSUPP, errno.ENOENT):
            raise
        # The system has no unnamed files, which is rare. Imported late: the import takes long.
        import tempfile

        with tempfile.TemporaryFile(dir=folder):
            return


@lru_cache(maxsize=128)
def _warn_read_only(folder: str, why: str) -> None:
    """Log once in a process that programs are not stored."""
    logger.warning(
        "cache folder %s: %s; new programs are not stored: %s",
        legible(folder), why, _ADVICE,
    )  # fmt: skip


def _add_to_ledger(ledger: str, size: int) -> float:
    """Add `size` bytes to the ledger; return its total, infinite if there is no ledger.

    The ledger has a byte for each 64 KiB of the entries at their last listing, and of those written
    since by any process.
    """
    try:
        descriptor = open_own(ledger, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        return math.inf
    with os.fdopen(descriptor, "ab", buffering=0) as file:
        file.write(bytes(_units(size)))
        return os.fstat(descriptor).st_size * _LEDGER_UNIT


def _units(size: int) -> int:
    return -(-size // _LEDGER_UNIT)


def _files(folder: str, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """Return the files in a folder whose name matches; none if the folder does not exist.

    Raises:
        CacheError: the folder cannot be listed.
    """
    try:
        files = list(os.scandir(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise CacheError(
            f"cache folder {legible(folder)}: cannot be listed ({error.strerror}); {_ADVICE}"
        ) from None
    for file in files:
        if re.fullmatch(name, file.name):
            with suppress(FileNotFoundError):  # removed by another process
                yield file.path, file.stat(follow_symlinks=False)


def _remove(path: str) -> bool:
    """Remove a file; return whether this call did."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _entry_of(artifact: Artifact) -> Entry:
    """Return the entry of an artifact; raise ArtifactError if its fields are malformed."""
    try:
        return from_plain(Entry, artifact.entry)
    except ValueError:
        raise artifact.error("has a header that is not laid out as it should be") from None


def _check_entry(artifact: Artifact, expected: Entry) -> None:
    """Close an artifact and raise ArtifactError if it is not the expected entry.

    Of whole models only the key is compared; their headers have the devices.
    """
    try:
        entry = _entry_of(artifact)
        if entry.whole and expected.whole and entry.key == expected.key:
            return
        if entry.device_version != expected.device_version or entry.device != expected.device:
            raise artifact.error(
                f"was made by {entry.device} {entry.device_version}, "
                f"not {expected.device} {expected.device_version}"
            )
        if (entry.key, entry.whole) != (expected.key, expected.whole):
            raise artifact.error(f"is for another model ({entry.model})")
    except ArtifactError:
        artifact.close()
        raise
