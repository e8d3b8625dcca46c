"""Discovery of the files of a Paddle model.

A model is a program and its parameters: `NAME.pdmodel` or `NAME.json` with `NAME.pdiparams`, or
`__model__` with `__params__` or with one file per parameter.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from crosschip.importers.model_files import files_at
from crosschip.ir import ModelFileError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.file_queries import kind, resolve_path
from crosschip.ir.files import DataFile

_OLD_PROGRAM, _OLD_PARAMETERS = "__model__", "__params__"
_EXPORTED = "inference"  # the stem that Paddle's own tools give every model
_PIR_MARK = re.compile(rb'"magic"\s*:\s*"pir"')
_PIR_VERSION = re.compile(rb'"version"\s*:\s*(\d{1,9})')
_PIR_MARK_WITHIN = 4096

LITE_SUFFIX = ".nb"
LITE_HEAD = struct.Struct("<H16sQ")
"""The header of Paddle Lite's files: format version, tool version, size of the program."""

_LITE_VERSIONS = (0, 1, 2)


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model.

    Attributes:
        program: the file with the program.
        parameters: the file of all parameters, or the folder with one file per parameter.
    """

    program: Path
    parameters: Path

    @property
    def name(self) -> str:
        """The model's name: the program's stem, or the folder's name if the stem is generic."""
        is_generic = self.program.name == _OLD_PROGRAM or self.program.stem == _EXPORTED
        return Path(resolve_path(self.program)).parent.name if is_generic else self.program.stem


def is_program(path: Path) -> bool:
    """Return whether a file is a program, by its name or, for `.json`, by its content."""
    if path.suffix == ".json":
        return is_pir(path)
    return path.suffix == ".pdmodel" or path.name == _OLD_PROGRAM


def is_pir(path: Path) -> bool:
    """Return whether a file is a `.json` with a Paddle 3 program."""
    if path.suffix != ".json" or kind(path) != "file":
        return False
    try:
        file = DataFile(path)
        return contains_pir(file.read(0, min(file.size, _PIR_MARK_WITHIN)))
    except OSError:
        return False


def contains_pir(content: bytes) -> bool:
    """Return whether the first bytes of a file state that it is a Paddle 3 program."""
    return _PIR_MARK.search(content, 0, _PIR_MARK_WITHIN) is not None


def is_lite_content(content: bytes) -> bool:
    """Return whether a file's content begins with Paddle Lite's header.

    The tool version is a string such as `v2.13-rc`, or a commit hash.
    """
    if len(content) < LITE_HEAD.size:
        return False
    version, tool, size = LITE_HEAD.unpack_from(content)
    text = tool.partition(b"\0")[0]
    fits = version in _LITE_VERSIONS and 0 < size <= len(content) - LITE_HEAD.size
    return fits and bool(text) and text.isascii() and text.decode().isprintable()


def lite_metadata(content: bytes) -> dict[str, str]:
    """Return the versions in Paddle Lite's header."""
    version, tool, _ = LITE_HEAD.unpack_from(content)
    name = tool.partition(b"\0")[0].decode()
    return {"format": f"Paddle Lite, format version {version}", "producer": f"opt {name}"}


def pir_metadata(content: bytes) -> dict[str, str]:
    """Return the version at the beginning of a Paddle 3 program; nothing for other content."""
    if not contains_pir(content):
        return {}
    version = _PIR_VERSION.search(content, 0, _PIR_MARK_WITHIN)
    return {"format": f"Paddle 3 (PIR){f', version {version[1].decode()}' if version else ''}"}


def programs(path: Path) -> list[Path]:
    """Return the path if it is a program, or the programs in the folder.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    return [file for file in files_at(path) if is_program(file) and kind(file) == "file"]


def find(path: Path) -> ModelFiles:
    """Return the files of the model at a path to a program or to a folder with one.

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
