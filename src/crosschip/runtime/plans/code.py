"""The code of packages that are being worked on, whose version does not tell what they do."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator

_CODE = (".py", ".so", ".toml", ".xml", ".h")
_METADATA = (".dist-info", ".egg-info")


def worked_on(modules: Iterable[str]) -> list[tuple[str, str]]:
    """The folders of the packages of modules that are not installed, and the states of their code.

    A package that is installed has the metadata of its distribution beside it.
    """
    packages = dict.fromkeys(module.partition(".")[0] for module in modules)
    found = [getattr(sys.modules.get(package), "__file__", None) for package in packages]
    folders = dict.fromkeys(os.path.dirname(file) for file in found if file is not None)
    return [(folder, state_of_code(folder)) for folder in folders if not _installed(folder)]


def state_of_code(folder: str) -> str:
    """A digest of the names, sizes and times of the files of code in a folder and those below."""
    digest = hashlib.sha256()
    for path, about in sorted(_files(folder)):
        digest.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0".encode(errors="replace"))
    return digest.hexdigest()


def _installed(folder: str) -> bool:
    with os.scandir(os.path.dirname(folder)) as found:
        return any(entry.name.endswith(_METADATA) for entry in found)


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.name.endswith(_CODE):
                yield entry.path, entry.stat()
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
