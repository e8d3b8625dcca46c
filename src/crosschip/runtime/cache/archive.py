"""The content of a cache as one file, to be taken to another machine or user.

In the file, entries are not authenticated: who imports one makes them his own, and trusts whoever
made it as he trusts his own programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from crosschip.ir import CacheError, InputError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.version import VERSION
from crosschip.runtime.cache.container import Container, assemble
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.cache.store import check_token
from crosschip.runtime.cache.whole import write_named
from crosschip.runtime.plain import from_plain, to_plain

KIND = "cache"

_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file of cache entries.

    Attributes:
        crosschip: the version that wrote it; for people.
        entries: one for each part.
    """

    crosschip: str
    entries: tuple[Entry, ...]


def export_entries(cache: Cache, path: Path) -> int:
    """Write all good entries of a cache to a file; how many there are.

    Raises:
        InputError: the file cannot be written.
        CacheError: an entry goes while it is being written.
    """
    found = [listed.entry for listed in cache.listing() if listed.entry is not None]
    entries = sorted(found, key=lambda entry: (entry.whole, entry.key))
    parts: list[Callable[[], bytes]] = [partial(_read, cache, entry) for entry in entries]
    header = Header(VERSION, tuple(entries))
    write_named(path, assemble(KIND, to_plain(header), parts))
    return len(entries)


def import_entries(
    cache: Cache,
    source: str | os.PathLike[str] | bytes | BinaryIO,
    digest: str | None = None,
) -> int:
    """Take the entries of a file over into a cache, as the user's own; how many there are.

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
    with Container(source, digest) as file:
        if file.kind != KIND:
            raise file.error(f"is a file of a {file.kind}, not of cache entries")
        plain = {
            name: value for name, value in file.header.items() if name not in ("kind", "parts")
        }
        try:
            header = from_plain(Header, plain)
            for entry in header.entries:
                _check_name(entry)
        except (ValueError, InputError) as error:
            raise file.error(
                f"has a header that is not laid out as it should be: {error}"
            ) from None
        if len(header.entries) != file.count:
            raise file.error(f"has {file.count} parts for {len(header.entries)} entries")
        for entry, program in zip(header.entries, file.parts(), strict=True):
            cache.write(entry, program)
    return len(header.entries)


def _read(cache: Cache, entry: Entry) -> bytes:
    content = cache.read(entry)
    if content is None:
        raise CacheError(f"{cache.path(entry)}: is gone meanwhile; export again")
    return content


def _check_name(entry: Entry) -> None:
    """Refuse an entry whose file would be somewhere else than in the folder."""
    if entry.whole:
        check_token(entry.key)
    elif not _KEY.fullmatch(entry.key):
        raise ValueError(f"{entry.key!r} is no key")
