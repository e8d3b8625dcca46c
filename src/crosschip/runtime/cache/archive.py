"""The content of a cache as one file, to be taken to another machine or user.

In the file, entries are not authenticated: who imports one makes them his own, and trusts whoever
made it as he trusts his own programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from crosschip.ir import CacheError, InputError
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.artifact.container import Artifact, encode
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.cache.store import check_token
from crosschip.runtime.plain import from_plain, to_plain

KIND = "cache"

_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """An entry in a file of cache entries.

    Attributes:
        entry: what it is for.
        kind: of its artifact.
        metadata: of its artifact.
        parts: how many parts of the file are its own, behind those of the entries before it.
    """

    entry: Entry
    kind: str
    metadata: Mapping[str, object]
    parts: int


def export_entries(cache: Cache, path: Path) -> int:
    """Write all intact entries of a cache to a file; return their number.

    Raises:
        InputError: the file cannot be written.
        CacheError: an entry goes while it is being written.
    """
    entries = [listed.entry for listed in cache.listing() if listed.entry is not None]
    archived: list[ArchivedEntry] = []
    parts: list[Callable[[], bytes | memoryview]] = []
    for entry in sorted(entries, key=lambda entry: (entry.whole, entry.key)):
        with _open(cache, entry) as artifact:
            count = artifact.count
            archived.append(ArchivedEntry(entry, artifact.kind, artifact.metadata, count))
        parts += [partial(_read, cache, entry, number) for number in range(count)]
    write_user_file(path, encode(KIND, {"entries": to_plain(archived)}, parts))
    return len(archived)


def import_entries(
    cache: Cache,
    source: str | os.PathLike[str] | bytes | BinaryIO,
    digest: str | None = None,
) -> int:
    """Add the entries of a file to a cache, as the user's own; return their number.

    Args:
        cache: where to; entries that are there already are replaced.
        source: the path of a file that `export_entries` wrote, its content, or the open file.
        digest: the digest that it must have; any if `None`.

    Raises:
        CacheError: the cache is only read.
        InputError: the source is something else.
        ModelFileError: it is no such file, is damaged, or has another digest.
    """
    cache.check_writable()
    with Artifact(source, digest) as file:
        if file.kind != KIND:
            raise file.error(f"is a file of a {file.kind}, not of cache entries")
        try:
            archived = from_plain(tuple[ArchivedEntry, ...], file.metadata["entries"])
            for each in archived:
                _check_name(each.entry)
        except (LookupError, ValueError, InputError) as error:
            raise file.error(
                f"has a header that is not laid out as it should be: {error}"
            ) from None
        if file.count != sum(max(0, each.parts) for each in archived):
            raise file.error(f"has {file.count} parts, which are not those of its entries")
        parts = file.parts()
        for each in archived:
            cache.write_artifact(
                each.entry, each.kind, each.metadata, list(islice(parts, max(0, each.parts)))
            )
    return len(archived)


def _open(cache: Cache, entry: Entry) -> Artifact:
    artifact = cache.open(entry)
    if artifact is None:
        raise CacheError(f"{cache.path(entry)}: is gone meanwhile; export again")
    return artifact


def _read(cache: Cache, entry: Entry, number: int) -> bytes | memoryview:
    with _open(cache, entry) as artifact:
        return artifact.part(number)


def _check_name(entry: Entry) -> None:
    """Refuse an entry whose file would be outside the folder."""
    if entry.whole:
        check_token(entry.key)
    elif not _KEY.fullmatch(entry.key):
        raise ValueError(f"{entry.key!r} is no key")
