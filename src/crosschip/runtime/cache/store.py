"""Stores of compiled programs: a folder, or memory.

They also serve NNAdapter's cache: a token with a folder, or a token with a buffer.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from crosschip.hal.folders import cache_folder
from crosschip.ir import InputError
from crosschip.ir.text import legible
from crosschip.runtime.artifact.container import Artifact, Part, encode
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import KIND, Cache

logger = logging.getLogger("crosschip.cache")

_TOKEN = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}"


@runtime_checkable
class Store(Protocol):
    """A store of compiled programs; any number of threads may use it at once."""

    def read(self, entry: Entry) -> bytes | None:
        """Return the bytes of an entry; `None` if missing, or unusable with a warning."""

    def write(self, entry: Entry, content: bytes) -> None:
        """Replace the bytes of an entry; log a warning if that fails."""

    def discard(self, entry: Entry, why: str) -> None:
        """Log a warning about an unusable entry, and remove it."""


def begin_reading(store: Store, entry: Entry) -> Callable[[], bytes | memoryview | None]:
    """Begin to read an entry in the background if the store can; the returned function waits."""
    return store.begin_reading(entry) if isinstance(store, Cache) else partial(store.read, entry)


def open_stored(store: Store, entry: Entry) -> Artifact | None:
    """Open an artifact in a store; `None` if it does not exist or is unusable.

    Raises:
        ArtifactError: the bytes in a store without files are no artifact.
    """
    if isinstance(store, Cache):
        return store.open(entry)
    content = store.read(entry)
    return None if content is None else Artifact(content)


def write_stored(
    store: Store, entry: Entry, kind: str, metadata: Mapping[str, object], parts: Sequence[Part]
) -> None:
    """Store an artifact, without concatenating its parts if the store can."""
    if isinstance(store, Cache):
        store.write_artifact(entry, kind, metadata, parts)
    else:
        store.write(entry, b"".join(encode(kind, metadata, parts)))


def write_parts(store: Store, entry: Entry, pieces: Sequence[bytes | memoryview]) -> None:
    """Store bytes from several buffers, without concatenating them if the store can."""
    if isinstance(store, Cache):
        store.write_artifact(entry, KIND, {}, [pieces])
    else:
        store.write(entry, b"".join(pieces))


class Memory:
    """A store in the memory of the process, without authentication.

    Args:
        models: compiled models, as `CompiledModel.to_bytes` returns them, by token.
    """

    def __init__(self, models: Mapping[str, bytes] | None = None) -> None:
        self._held = {(True, token): bytes(model) for token, model in (models or {}).items()}

    @property
    def models(self) -> Mapping[str, bytes]:
        """The compiled models, by token."""
        return {key: held for (whole, key), held in list(self._held.items()) if whole}

    def read(self, entry: Entry) -> bytes | None:
        """Return the bytes of an entry; `None` if it does not exist."""
        return self._held.get((entry.whole, entry.key))

    def write(self, entry: Entry, content: bytes) -> None:
        """Replace the bytes of an entry."""
        self._held[entry.whole, entry.key] = bytes(content)

    def discard(self, entry: Entry, why: str) -> None:
        """Warn about unusable bytes, and remove them."""
        logger.warning("cache entry %s: %s; compiling again", entry.key, legible(why))
        self._held.pop((entry.whole, entry.key), None)


CacheArgument = bool | str | os.PathLike[str] | bytes | bytearray | memoryview | Store
"""The values of `cache=`; see `open_store`."""


def open_store(
    argument: CacheArgument, limit: int | None = None, token: str | bool = False
) -> Store | None:
    """Return the store for the `cache` argument of `compile`.

    Args:
        argument: `True` for the default folder, a folder, `False` for none, a store; or, with a
            token, a buffer with a whole compiled model.
        limit: the maximum size of a folder in bytes, as for `Cache`.
        token: the name under which a whole model is stored; `True` to derive it from the content.

    Raises:
        InputError: an argument is invalid, or does not fit the others.
        CacheError: as for `Cache`.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InputError(f"cache_size is {limit!r}, but must be a number of bytes, or None")
    if not isinstance(token, bool):
        check_token(token)
    if token and argument is False:
        raise InputError("there is a token, but no cache; pass a folder or a buffer as cache")
    if isinstance(argument, bool):
        return Cache(cache_folder(), limit) if argument else None
    if isinstance(argument, Store):
        return argument
    if isinstance(token, str) and isinstance(argument, bytes | bytearray | memoryview):
        return Memory({token: bytes(argument)})
    try:
        folder = os.fspath(argument)  # type: ignore[arg-type]  # whatever it is
    except Exception:  # a foreign object's own method, or none
        folder = ""
    if not isinstance(folder, str) or not folder:
        raise InputError(
            f"cache is {_format_argument(argument)}, but must be True for the default folder, "
            f"the path of a folder, a buffer (with a token), a store, or False for no cache"
        )
    return Cache(folder, limit)


def check_token(token: object) -> None:
    """Raise InputError unless a token is a portable file name."""
    if not isinstance(token, str) or not re.fullmatch(_TOKEN, token):
        raise InputError(
            f"token is {token!r}, but must be 1 to 128 letters, digits, dots, underscores and "
            f"hyphens, the first of them no dot"
        )


def _format_argument(argument: object) -> str:
    """Return a value for an error message: its text, or its type."""
    if argument is None or isinstance(argument, int | float | str):
        return repr(argument)
    if isinstance(argument, bytes | bytearray | memoryview):
        return "a buffer without the token that it is of"
    return f"a {type(argument).__name__}"
