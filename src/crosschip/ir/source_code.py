"""The code of packages that lie outside installed distributions, whose version does not tell it.

Such a package is installed in place (`pip install -e`), is on the path by hand, or is a plain file.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator

_CODE = (".py", ".so", ".toml", ".xml", ".h")
_METADATA = ".dist-info"
_LEGACY_METADATA = ".egg-info"
"""Lies beside an installed package, but also beside one that is installed in place."""

_DEVICES = "crosschip.devices."
_SITE_FOLDERS = ("site-packages", "dist-packages")


def editable_code(modules: Iterable[str]) -> list[tuple[str, str]]:
    """The places of the code of modules that are not installed, and the states of that code.

    A place is the folder of the outermost package, or the file of a module without a package.
    """
    places = dict.fromkeys(_place(module) for module in modules)
    return [(p, state_of_code(p)) for p in places if p is not None and not _is_installed(p)]


def state_of_files(paths: Iterable[str]) -> str:
    """A digest of names, sizes and times of files that no distribution installed; empty if none."""
    states = [(p, state_of_code(p)) for p in sorted(set(paths)) if not _is_installed(p)]
    return hashlib.sha256(repr(states).encode(errors="replace")).hexdigest() if states else ""


def place_of(module: str) -> str | None:
    """The place of the code that a device's module consists of; `None` if that is not its own.

    A device in crosschip itself is the folder of its module; all else there, such as the contract,
    has crosschip's version.
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return None
    if top == "crosschip":
        if not module.startswith(_DEVICES):
            return None
        file = getattr(sys.modules.get(module), "__file__", None)
        whole = _place(module)
        return None if file is None or whole is None or _is_installed(whole) else _folder(file)
    return _place(module)


def state_of_code(place: str) -> str:
    """A digest of the names, sizes and times of the files of code in a place.

    Of a folder those are the files in it and below; of a file, it and those beside it.
    """
    digest = hashlib.sha256()
    if os.path.isdir(place):
        files = dict(_files(place, below=True))
    else:
        files = {**dict(_files(_folder(place), below=False)), place: os.stat(place)}
    for path, status in sorted(files.items()):
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="replace"))
    return digest.hexdigest()


def _place(module: str) -> str | None:
    """The folder of the outermost package of a module, or its file if it is in none."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        package = sys.modules.get(".".join(parts[:count]))
        file = getattr(package, "__file__", None)
        if file is not None:  # a namespace package has none
            return _folder(file) if hasattr(package, "__path__") else os.path.abspath(file)
    return None


def _folder(file: str) -> str:
    return os.path.dirname(os.path.abspath(file))


def _is_installed(place: str) -> bool:
    """Tell whether the metadata of a distribution lies beside a folder or file."""
    beside = os.path.dirname(place)
    endings = [_METADATA]
    if os.path.basename(beside) in _SITE_FOLDERS:
        endings.append(_LEGACY_METADATA)
    try:
        with os.scandir(beside) as entries:
            return any(entry.name.endswith(tuple(endings)) for entry in entries)
    except OSError:  # in a zip file, which is not edited in place
        return True


def _files(folder: str, *, below: bool) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_CODE):
                yield entry.path, entry.stat()
            elif below and entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, below=True)
