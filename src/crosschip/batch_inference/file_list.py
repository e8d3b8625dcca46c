"""Lists of input files: of patterns, folders and list files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from crosschip.ir import InputError
from crosschip.ir.file_queries import StrPath
from crosschip.ir.files import open_regular
from crosschip.preprocessing import is_picture

_LIST_SUFFIX = ".txt"


def is_input_file(path: StrPath) -> bool:
    """Return whether a file's name ends as those of pictures and of NumPy arrays do."""
    path = Path(path)
    return path.suffix.lower() == ".npy" or is_picture(path)


def list_files(sources: StrPath | Iterable[StrPath]) -> list[str]:
    """Return the files that sources name, each once.

    Args:
        sources: one or several of: a file; a pattern such as `photos/*.jpg`, in which `**` matches
            folders of any depth; a folder, of which all pictures and `.npy` files are taken, also
            in folders in it; a `.txt` file with the path of a file on each line.

    Returns:
        The paths in the order of the sources, and sorted within a pattern or folder.

    Raises:
        InputError: a pattern or a folder has no such file, or a list cannot be read.
    """
    one = [sources] if isinstance(sources, str | os.PathLike) else sources
    paths = dict.fromkeys(path for source in one for path in _files_of(os.fspath(source)))
    if not paths:
        raise InputError("there are no files to map; name files, a pattern, a folder or a list")
    return list(paths)


def _files_of(source: str) -> Iterable[str]:
    if os.path.isdir(source):
        return _nonempty(sorted(_files_below(source)), source, "holds no picture and no .npy file")
    if source.lower().endswith(_LIST_SUFFIX):
        return _nonempty(_lines(source), source, "names no file")
    if glob.has_magic(source) and not os.path.lexists(source):
        paths = filter(os.path.isfile, glob.iglob(source, recursive=True))
        return _nonempty(sorted(paths), source, "matches no file")
    return [source]


def _files_below(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        yield from (os.path.join(parent, name) for name in names if is_input_file(name))


def _lines(path: str) -> list[str]:
    """Return the lines of a list file that are not empty."""
    try:
        with open_regular(path) as file:
            lines = os.fsdecode(file.readall()).splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return [line for line in lines if line.strip()]


def _nonempty(paths: list[str], source: str, fault: str) -> list[str]:
    if not paths:
        raise InputError(f"{source} {fault}")
    return paths
