"""Export of a cache to one file for another machine or user, and import.

The entries in the file are not authenticated. Importing it signs them with the user's own secret,
so it must come from a trusted source.
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
        entry: the entry.
        kind: the kind of its artifact.
        metadata: the metadata of its artifact.
        parts: the number of its parts, which follow those of the entry before it.
    """

    entry: Entry
    kind: str
    metadata: Mapping[str, object]
    parts: int


def export_entries(cache: Cache, path: Path) -> int:
    """Write all intact entries of a cache to a file; return their number.

    Raises:
        InputError: the file cannot be written.
        CacheError: an entry is removed during the export.
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
    """Add the entries of a file to a cache; return their number.

    Args:
        cache: the cache; existing entries are replaced.
        source: the path of a file that `export_entries` wrote, its content, or the open file.
        digest: the required digest; any if `None`.

    Raises:
        CacheError: the cache is read-only.
        InputError: the source has the wrong type.
        ModelFileError: the file is no export, is damaged, or has another digest.
    """
    cache.check_writable()
    with Artifact(source, digest) as file:
        if file.kind != KIND:
            raise file.error(f"is a file of a {file.kind}, not of cache entries")
        try:
            archived = from_plain(tuple[ArchivedEntry, ...], file.metadata["entries"])
            for listed in archived:
                _check_name(listed.entry)
        except (LookupError, ValueError, InputError) as error:
            raise file.error(
                f"has a header that is not laid out as it should be: {error}"
            ) from None
        if file.count != sum(max(0, listed.parts) for listed in archived):
            raise file.error(f"has {file.count} parts, which are not those of its entries")
        parts = file.parts()
        for listed in archived:
            cache.write_artifact(
                listed.entry,
                listed.kind,
                listed.metadata,
                list(islice(parts, max(0, listed.parts))),
            )
    return len(archived)


def _open(cache: Cache, entry: Entry) -> Artifact:
    artifact = cache.open(entry)
    if artifact is None:
        raise CacheError(f"{cache.path(entry)}: was removed during the export; export again")
    return artifact


def _read(cache: Cache, entry: Entry, number: int) -> bytes | memoryview:
    with _open(cache, entry) as artifact:
        return artifact.part(number)


def _check_name(entry: Entry) -> None:
    """Raise an error if an entry's name is not valid, so could lead outside the folder."""
    if entry.whole:
        check_token(entry.key)
    elif not _KEY.fullmatch(entry.key):
        raise ValueError(f"{entry.key!r} is no key")
