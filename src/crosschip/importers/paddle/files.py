"""Finds the files of a Paddle model.

A model is a program and its parameters: `NAME.pdmodel` or `NAME.json` with `NAME.pdiparams`, or
`__model__` with `__params__` or with one file a parameter.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from crosschip.ir import ModelFileError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.file_queries import kind, list_folder, resolve_path
from crosschip.ir.files import DataFile

_OLD_PROGRAM, _OLD_PARAMETERS = "__model__", "__params__"
_EXPORTED = "inference"  # the stem that Paddle's own tools give every model
_PIR_MARK = re.compile(rb'"magic"\s*:\s*"pir"')
_PIR_MARK_WITHIN = 4096

LITE_SUFFIX = ".nb"
LITE_HEAD = struct.Struct("<H16sQ")
"""The head of Paddle Lite's files: version, version of the tool, and size of the program."""

_LITE_VERSIONS = (0, 1, 2)


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model.

    Attributes:
        program: the file with the program.
        parameters: the file with all parameters, or the folder with a file for each.
    """

    program: Path
    parameters: Path

    @property
    def name(self) -> str:
        """The name of the model."""
        says_nothing = self.program.name == _OLD_PROGRAM or self.program.stem == _EXPORTED
        return Path(resolve_path(self.program)).parent.name if says_nothing else self.program.stem


def is_program(path: Path) -> bool:
    """Tell whether a file is a program, by its name or, of a `.json`, by how it begins."""
    if path.suffix == ".json":
        return is_pir(path)
    return path.suffix == ".pdmodel" or path.name == _OLD_PROGRAM


def is_pir(path: Path) -> bool:
    """Tell whether a file is a `.json` that says early on that it is a program of Paddle 3."""
    if path.suffix != ".json" or kind(path) != "file":
        return False
    try:
        file = DataFile(path)
        return says_pir(file.read(0, min(file.size, _PIR_MARK_WITHIN)))
    except OSError:
        return False


def says_pir(content: bytes) -> bool:
    """Tell whether a file's content says early on that it is a program of Paddle 3."""
    return _PIR_MARK.search(content, 0, _PIR_MARK_WITHIN) is not None


def says_lite(content: bytes) -> bool:
    """Tell whether a file's content begins as that of one of Paddle Lite's does.

    The version of the tool is a text such as `v2.13-rc`, or digits of a commit.
    """
    if len(content) < LITE_HEAD.size:
        return False
    version, tool, size = LITE_HEAD.unpack_from(content)
    text = tool.partition(b"\0")[0]
    fits = version in _LITE_VERSIONS and 0 < size <= len(content) - LITE_HEAD.size
    return fits and bool(text) and text.isascii() and text.decode().isprintable()


def programs(path: Path) -> list[Path]:
    """The programs at a path: it itself, or those in the folder that it is.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    try:
        candidates = list_folder(path) if kind(path) == "folder" else [path]
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    return [file for file in candidates if is_program(file) and kind(file) == "file"]


def find(path: Path) -> ModelFiles:
    """The files of the model that a path, of a program or of a folder with one, leads to.

    Raises:
        ModelFileError: there is no program, or a folder has more than one.
    """
    candidates = programs(path)
    if len(candidates) != 1:
        listed = f": {', '.join(file.name for file in candidates)}; name one" if candidates else ""
        raise ModelFileError(f"{path}: has {len(candidates)} Paddle models{listed}")
    (program,) = candidates
    if program.name != _OLD_PROGRAM:
        return ModelFiles(program, program.with_suffix(".pdiparams"))
    combined = program.with_name(_OLD_PARAMETERS)
    return ModelFiles(program, combined if kind(combined) else program.parent)
