"""Entry points of installed packages, read once per process.

`importlib.metadata` takes several times as long to import as this module takes to read them. It is
used only if it is imported already, or if a package is not installed in a plain folder.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from typing import Protocol

    class Named(Protocol):
        """Object with a name."""

        @property
        def name(self) -> str: ...

    class EntryPoint(Protocol):
        """The attributes of `importlib.metadata.EntryPoint` that crosschip uses."""

        @property
        def name(self) -> str: ...
        @property
        def value(self) -> str: ...
        @property
        def group(self) -> str: ...
        @property
        def module(self) -> str: ...
        @property
        def dist(self) -> Named | None: ...

        def load(self) -> Any: ...


_METADATA = (".dist-info", ".egg-info")
_MODULE = "importlib.metadata"


@dataclass(frozen=True, slots=True)
class _Distribution:
    """Installed package, identified by its metadata folder."""

    folder: str

    @property
    def name(self) -> str:
        # Rarely needed, and slow to import.
        from importlib.metadata import Distribution
        from pathlib import Path

        name: str = Distribution.at(Path(self.folder)).name
        return name


@dataclass(frozen=True, slots=True)
class _EntryPoint:
    """Entry point that this module has read."""

    name: str
    value: str
    group: str
    dist: _Distribution

    @property
    def module(self) -> str:
        return _without_extras(self.value).partition(":")[0]

    def load(self) -> Any:
        """Import and return the object that the entry point names."""
        target: Any = import_module(self.module)
        for attribute in filter(None, _without_extras(self.value).partition(":")[2].split(".")):
            target = getattr(target, attribute)
        return target


class _Unusual(Exception):
    """A package is installed in a form that only `importlib.metadata` supports."""


@lru_cache(maxsize=32)
def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group."""
    return tuple([entry for entry in _read_all() if entry.group == group])


def clear_entry_points() -> None:
    """Clear the cache after packages were installed or removed."""
    entry_points.cache_clear()
    _read_all.cache_clear()


@lru_cache(maxsize=1)
def _read_all() -> Sequence[EntryPoint]:
    if _MODULE not in sys.modules:
        try:
            return list(_read())
        except (_Unusual, OSError, UnicodeDecodeError):
            pass
    installed: Any = import_module(_MODULE).entry_points()
    return [entry for group in installed.groups for entry in installed.select(group=group)]


def _read() -> Iterator[EntryPoint]:
    """Yield the entry points of all packages; of packages with equal names, those of the first.

    Raises:
        OSError: metadata cannot be read.
        UnicodeDecodeError: metadata is not text.
        _Unusual: another finder is installed, or the metadata has another form.
    """
    if any(f is not PathFinder and hasattr(f, "find_distributions") for f in sys.meta_path):
        raise _Unusual
    packages: set[str] = set()
    for folder in sys.path:
        for metadata_folder in _folders(folder):
            stem = os.path.basename(metadata_folder).rpartition(".")[0].partition("-")[0]
            package = re.sub(r"[-_.]+", "_", stem).lower()
            if package not in packages:
                packages.add(package)
                yield from _entries(metadata_folder)


def _folders(folder: str) -> list[str]:
    """Return the metadata folders in a folder of packages."""
    if not isinstance(folder, str) or folder.endswith(".egg") or os.path.isfile(folder):
        raise _Unusual
    try:
        names = os.listdir(folder or ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [os.path.join(folder, name) for name in names if name.lower().endswith(_METADATA)]


def _entries(metadata_folder: str) -> Iterator[EntryPoint]:
    """Yield the entry points of one package."""
    try:
        with open(os.path.join(metadata_folder, "entry_points.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return
    group = None
    for line in map(str.strip, lines):
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif line and not line.startswith("#") and group is not None:
            name, equals, value = map(str.strip, line.partition("="))
            if not equals or not _is_plain(value):
                raise _Unusual
            yield _EntryPoint(name, value, group, _Distribution(metadata_folder))


def _is_plain(value: str) -> bool:
    """Return whether a value is `module` or `module:attribute`, optionally with extras."""
    parts = _without_extras(value).split(":")
    return len(parts) < 3 and all(name.isidentifier() for part in parts for name in part.split("."))


def _without_extras(value: str) -> str:
    """Return the value without its extras: `module:attribute` for `module:attribute [extra]`."""
    return value.partition("[")[0].strip()
