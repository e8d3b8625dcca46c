"""State of source code whose package version does not identify it.

Such code is installed in place (`pip install -e`), on `sys.path` without installation, or a single
file.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator

_CODE = (".py", ".so", ".toml", ".xml", ".h")
_METADATA = ".dist-info"
_LEGACY_METADATA = ".egg-info"
"""Metadata folder beside an installed package; editable installs have one, too."""

_DEVICES = "crosschip.devices."
_SITE_FOLDERS = ("site-packages", "dist-packages")


def editable_code(modules: Iterable[str]) -> list[tuple[str, str]]:
    """Return the location and the state of the code of each module that is not installed.

    A location is the folder of the outermost package, or the file of a module without a package.
    """
    locations = dict.fromkeys(_package_location(module) for module in modules)
    return [(p, state_of_code(p)) for p in locations if p is not None and not _is_installed(p)]


def state_of_files(paths: Iterable[str]) -> str:
    """Return a digest of names, sizes and times of uninstalled files; empty if there are none."""
    states = [(p, state_of_code(p)) for p in sorted(set(paths)) if not _is_installed(p)]
    return hashlib.sha256(repr(states).encode(errors="replace")).hexdigest() if states else ""


def code_location(module: str) -> str | None:
    """Return the location of a device module's own code; `None` if a version identifies the code.

    A device in crosschip is the folder of its module; everything else in crosschip has its version.
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return None
    if top == "crosschip":
        if not module.startswith(_DEVICES):
            return None
        file = getattr(sys.modules.get(module), "__file__", None)
        package = _package_location(module)
        return None if file is None or package is None or _is_installed(package) else _folder(file)
    return _package_location(module)


def state_of_code(location: str) -> str:
    """Return a digest of the names, sizes and times of code files.

    For a folder, these are the files in it and in its subfolders; for a file, it and its siblings.
    """
    digest = hashlib.sha256()
    if os.path.isdir(location):
        files = dict(_files(location, below=True))
    else:
        files = {**dict(_files(_folder(location), below=False)), location: os.stat(location)}
    for path, status in sorted(files.items()):
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="replace"))
    return digest.hexdigest()


def _package_location(module: str) -> str | None:
    """Return the folder of a module's outermost package, or its file if it is in no package."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        package = sys.modules.get(".".join(parts[:count]))
        file = getattr(package, "__file__", None)
        if file is not None:  # a namespace package has none
            return _folder(file) if hasattr(package, "__path__") else os.path.abspath(file)
    return None


def _folder(file: str) -> str:
    return os.path.dirname(os.path.abspath(file))


def _is_installed(location: str) -> bool:
    """Return whether a distribution's metadata is beside a folder or file."""
    beside = os.path.dirname(location)
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
