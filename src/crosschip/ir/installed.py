"""The entry points of installed packages: read once, as that takes as long as opening a device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints, SelectableGroups


@lru_cache(maxsize=32)
def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group."""
    return tuple(_every().select(group=group))


def look_again() -> None:
    """Read them anew when they are next asked for: what is installed has changed."""
    entry_points.cache_clear()
    _every.cache_clear()


@lru_cache(maxsize=1)
def _every() -> EntryPoints | SelectableGroups:
    # A model that has been planned before is found without it, and it takes long to import.
    from importlib import metadata

    return metadata.entry_points()
