"""The cache of compiled programs in a folder, with a file an entry, bounded in size.

A program is handed out only if the user's own secret authenticates it, whoever can write to the
folder; programs are kept only in a folder that nobody else can write to. The folder, the files and
what they are trusted with are specified in docs/formats.md.
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
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from crosschip.ir import CacheError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.files import open_own
from crosschip.ir.reading import StrPath
from crosschip.ir.text import legible
from crosschip.runtime.artifact.atomic_files import remove_abandoned, unfinished, write_whole
from crosschip.runtime.artifact.container import (
    Artifact,
    ArtifactError,
    MissingArtifactError,
    Part,
    encode,
    is_authenticated,
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
"""The kind of an artifact of one part, which says nothing of what is in it."""

SUFFIX = ".chip"
MODEL_SUFFIX = ".nnc"
"""Of whole models, which are named by their token; the suffix is that of NNAdapter."""

DEFAULT_LIMIT = 2 * 2**30

_ENTRY = rf"[0-9a-f]{{64}}\{SUFFIX}|[^.].*\{MODEL_SUFFIX}"
_UNFINISHED = ".unfinished"
_LEDGER = ".ledger"
_LEDGER_UNIT = 2**16
_SIZE = r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([KMGT]?)(?:i?B)?"
_ADVICE = "pass another folder, set CROSSCHIP_CACHE_DIR, or turn the cache off (cache=False)"

logger = logging.getLogger("crosschip.cache")


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

    path: str
    size: int
    used: float
    entry: Entry | None
    problem: str


class Cache:
    """A folder of entries. Any number of threads and processes may use it at once.

    A folder that cannot be written to, that belongs to another user or that others can write to is
    only read. Where the folder or the secret is not there and the disk is full or only to be read,
    nothing is kept. What a process left that was killed while it wrote is removed by the next that
    opens the folder. What this process has yet to write is there once it has been opened.

    Attributes:
        limit: how many bytes they take together at most.
    """

    def __init__(self, folder: StrPath, limit: int | None = None) -> None:
        """Open a folder.

        Args:
            folder: made, for the user alone, if it is not there.
            limit: in bytes; by default what `CROSSCHIP_CACHE_SIZE` says, or 2 GiB.

        Raises:
            CacheError: the folder cannot be made, the user's secret cannot be used, or
                `CROSSCHIP_CACHE_SIZE` is no size.
        """
        background_writer.wait()
        self._folder = os.path.expanduser(os.fspath(folder))
        self.limit = default_limit() if limit is None else limit
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._only_read = _why_only_read(self._folder)
            if not self._only_read:
                remove_abandoned(self._unfinished)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self._only_read = f"cannot be made ({why})"
            if not isinstance(error, OSError) or not is_full(error):
                raise CacheError(
                    f"cache folder {legible(self._folder)}: cannot be written to ({why}); {_ADVICE}"
                ) from None
        try:
            self._secret = secret()
        except NoRoomError as error:
            self._only_read = str(error)
            self._secret = os.urandom(SECRET_SIZE)  # with which nothing is written or found

    @property
    def folder(self) -> Path:
        """Where the entries are."""
        # For people's own code; it takes long to import.
        from pathlib import Path

        return Path(self._folder)

    def read(self, entry: Entry) -> bytes | None:
        """Return the bytes that were stored; `None`, after a warning if there is cause, if none.

        A file that is damaged, does not authenticate, or is of another key, version or device, is
        removed.
        """
        content = self._begin_reading(entry, mapped=False)()
        return None if content is None else bytes(content)

    def begin_reading(self, entry: Entry) -> Callable[[], bytes | memoryview | None]:
        """Begin with what `read` does; what is returned ends it, and returns the bytes.

        Other threads are checking them then. Large content is a view of the file, which is
        replaced as a whole where it is replaced. (Not so in a folder that others can write to: they
        could change it once it has been checked.)
        """
        return self._begin_reading(entry, mapped=os.name == "posix" and not self._only_read)

    def _begin_reading(
        self, entry: Entry, *, mapped: bool
    ) -> Callable[[], bytes | memoryview | None]:
        artifact = self.open(entry, mapped=mapped)
        if artifact is None:
            return lambda: None
        begin = artifact.begin_part
        with artifact:
            end = self._unless_damaged(entry, lambda: begin(0))
        return (lambda: None) if end is None else lambda: self._unless_damaged(entry, end)

    def _unless_damaged(self, entry: Entry, read: Callable[[], T]) -> T | None:
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
        except MissingArtifactError:
            return None
        except ArtifactError as error:
            self.discard(entry, str(error))
            return None
        problem = _mismatch(artifact, entry)
        if problem:
            artifact.close()
            self.discard(entry, problem)
            return None
        if not self._only_read:
            with suppress(OSError):  # removed meanwhile: it is good anyway
                os.utime(path)
        return artifact

    def write(self, entry: Entry, content: bytes) -> None:
        """Store bytes in the place of what is there for their key, whole or not at all.

        Entries that have not been used for longest go, where there is no room for it. What cannot
        be stored is worth a warning.
        """
        self.write_artifact(entry, KIND, {}, [content])

    def write_artifact(
        self, entry: Entry, kind: str, metadata: Mapping[str, object], parts: Sequence[Part]
    ) -> None:
        """Store an artifact as `write` does; its arguments are as for `artifact.encode`."""
        path = self.path(entry)
        if self._only_read:
            _warn_only_read(self._folder, self._only_read)
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
            remove_abandoned(self._unfinished)
            self._make_room(size)
            os.makedirs(self._unfinished, mode=0o700, exist_ok=True)
            write_whole(path, pieces, self._unfinished)
        except OSError as error:
            logger.warning(
                "cache entry %s: could not be written (%s)", legible(path), error.strerror
            )

    def discard(self, entry: Entry, why: str) -> None:
        """Warn about an entry that cannot be used, and remove it."""
        path = self.path(entry)
        why = why.removeprefix(f"{legible(path)}: ")
        logger.warning("cache entry %s: %s; compiling again", legible(path), legible(why))
        if not self._only_read:
            _remove(path)

    def listing(self, *, whole: bool = True) -> list[Listed]:
        """Return all entries, the most recently used first.

        Args:
            whole: read and check all of each; else only the beginning, which says what it is.
        """
        found = []
        for path, about in self._entries():
            entry, problem = None, ""
            try:
                with Artifact(path, secret=self._secret) as artifact:
                    if whole:
                        for _ in artifact.parts():
                            pass
                    entry = _entry_of(artifact)
            except MissingArtifactError:  # removed meanwhile
                continue
            except ArtifactError as error:
                problem = str(error).removeprefix(f"{legible(path)}: ")
            found.append(Listed(path, about.st_size, about.st_mtime, entry, problem))
        return sorted(found, key=lambda listed: -listed.used)

    def leftovers(self) -> int:
        """Bytes in files that are being written."""
        return sum(about.st_size for _, about in unfinished(self._unfinished))

    def prune(self, limit: float) -> int:
        """Remove damaged entries, and the least recently used until the rest fit.

        What a process left that was killed while it wrote goes too.

        Args:
            limit: how many bytes the entries may take together.

        Returns:
            How many entries were removed.

        Raises:
            CacheError: the folder is only read.
        """
        self.check_writable()
        remove_abandoned(self._unfinished)
        removed = total = 0
        for listed in self.listing():
            total += listed.size if listed.entry else 0
            if listed.entry is None or total > limit:
                removed += _remove(listed.path)
        return removed

    def check_writable(self) -> None:
        """Make sure that entries can be added and removed.

        Raises:
            CacheError: the folder is only read.
        """
        if self._only_read:
            raise CacheError(
                f"cache folder {legible(self._folder)}: {self._only_read}; nothing is changed"
            )

    def path(self, entry: Entry) -> str:
        """The file of an entry, whether it is there or not."""
        name = f"{entry.key}{MODEL_SUFFIX if entry.whole else SUFFIX}"
        return os.path.join(self._folder, name)

    @property
    def _unfinished(self) -> str:
        return os.path.join(self._folder, _UNFINISHED)

    def _entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """The files of entries; what another program keeps in the folder is none of them."""
        for path, about in _files(self._folder, _ENTRY):
            if path.endswith(SUFFIX) or is_authenticated(path):
                yield path, about

    def _make_room(self, size: int) -> None:
        """Remove what has not been used for longest, if with `size` more the limit is passed.

        The entries are looked at only when the ledger says that they may be too many, and then so
        many go that it takes an eighth of the limit in new ones until they are looked at again.
        """
        ledger = os.path.join(self._folder, _LEDGER)
        if _add_to_ledger(ledger, size) <= self.limit:
            return
        with suppress(FileNotFoundError):
            os.unlink(ledger)  # whoever writes meanwhile looks at the entries too
        entries = list(self._entries())
        total = sum(about.st_size for _, about in entries) + self.leftovers()
        room = max(0, self.limit - self.limit // 8 - size)
        for path, about in sorted(entries, key=lambda found: found[1].st_mtime):
            if total <= room:
                break
            if _remove(path):
                total -= about.st_size
        descriptor = open_own(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(descriptor, "ab") as file:
            file.write(bytes(_units(total + size)))


def default_limit() -> int:
    """`CROSSCHIP_CACHE_SIZE` in bytes, or `DEFAULT_LIMIT`.

    Raises:
        CacheError: it is no size.
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


def _why_only_read(folder: str) -> str:
    """The reason why nothing is written to a folder; empty if it is the user's to write to."""
    about = os.stat(folder)
    if hasattr(os, "geteuid"):
        if about.st_uid != os.geteuid():
            return "belongs to another user, so it is only read"
        if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return "others can write to it, so it is only read (chmod go-w makes it yours alone)"
    try:
        _try_to_write(folder)
    except OSError as error:
        return f"cannot be written to ({error.strerror}), so it is only read"
    return ""


def _try_to_write(folder: str) -> None:
    """Make a file without a name in a folder, and forget it.

    Raises:
        OSError: that cannot be done.
    """
    flags = getattr(os, "O_TMPFILE", 0)
    try:
        os.close(os.open(folder, flags | os.O_WRONLY, 0o600))
    except OSError as error:
        if flags and error.errno not in (errno.EISDIR, errno.EOPNOTSUPP, errno.ENOENT):
            raise
        # The system has no such files; few do not, and it takes long to import.
        import tempfile

        with tempfile.TemporaryFile(dir=folder):
            return


@lru_cache(maxsize=128)
def _warn_only_read(folder: str, why: str) -> None:
    """Say once in a process that programs are not kept."""
    logger.warning(
        "cache folder %s: %s; what is compiled now is not kept: %s",
        legible(folder), why, _ADVICE,
    )  # fmt: skip


def _add_to_ledger(ledger: str, size: int) -> float:
    """Bytes that the entries may take with `size` more; infinite if nobody has counted yet.

    The ledger holds a byte for each 64 KiB that was there when the entries were last looked at, or
    has been written since by any process.
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
    """The files in a folder whose whole name matches; none if the folder is not there.

    Raises:
        CacheError: the folder cannot be listed.
    """
    try:
        found = list(os.scandir(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise CacheError(
            f"cache folder {legible(folder)}: cannot be listed ({error.strerror}); {_ADVICE}"
        ) from None
    for file in found:
        if re.fullmatch(name, file.name):
            with suppress(FileNotFoundError):  # removed meanwhile
                yield file.path, file.stat(follow_symlinks=False)


def _remove(path: str) -> bool:
    """Remove a file, and say whether it is gone because of it."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _entry_of(artifact: Artifact) -> Entry:
    """Return the entry that an artifact is.

    Raises:
        ArtifactError: it is none.
    """
    try:
        return from_plain(Entry, artifact.entry)
    except ValueError:
        raise artifact.error("has a header that is not laid out as it should be") from None


def _mismatch(artifact: Artifact, wanted: Entry) -> str:
    """Return why an artifact is not the wanted entry; a whole model says itself what it is for."""
    try:
        entry = _entry_of(artifact)
    except ArtifactError as error:
        return str(error)
    if entry.whole and wanted.whole and entry.key == wanted.key:
        return ""
    if entry.device_version != wanted.device_version or entry.device != wanted.device:
        return (
            f"was made by {entry.device} {entry.device_version}, "
            f"not {wanted.device} {wanted.device_version}"
        )
    if (entry.key, entry.whole) != (wanted.key, wanted.whole):
        return f"is for another model ({entry.model})"
    return ""
