"""Importer of PyTorch: modules and exported programs in memory, and `.pt2` files.

PyTorch exports a module (`torch.export`), and translates exported programs to ONNX in memory
(`torch.onnx`); the importer of ONNX reads that. PyTorch is imported only for a source of PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosschip.ir import Model, ModelFileError
from crosschip.ir.file_queries import kind, list_folder
from crosschip.ir.files import open_regular

_SUFFIX = ".pt2"
_ZIP = b"PK\x03\x04"
_FORMAT = b"/archive_format"
_TAIL_BYTES = 2**20
"""The number of bytes at the end of a ZIP file that are searched for the members' names."""


def recognizes(source: Path | bytes) -> bool:
    """Return whether the source is a `.pt2` file, a folder with one, or its content.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    if isinstance(source, bytes):
        return source.startswith(_ZIP) and _FORMAT in source[-_TAIL_BYTES:]
    return bool(_files(source))


def recognizes_object(source: object) -> bool:
    """Return whether an object is a module or an exported program of PyTorch."""
    torch: Any = sys.modules.get("torch")
    if torch is None or isinstance(source, torch.jit.ScriptModule):
        return False
    return isinstance(source, torch.nn.Module | torch.export.ExportedProgram)


def load(source: Path | bytes) -> Model:
    """Import an exported program from a file.

    Args:
        source: the `.pt2` file that `torch.export.save` wrote; a folder with one such file; or the
            content of the file.

    Raises:
        ModelFileError: the file is damaged, or can only be read by executing code that it contains.
        UnsupportedError: PyTorch is not installed, or the program uses operators that cannot be
            expressed.
    """
    from crosschip.importers.pytorch.archive import read_program
    from crosschip.importers.pytorch.exporting import import_program

    file = _find(source)
    where = str(file) if isinstance(file, Path) else "the model in memory"
    name = file.stem if isinstance(file, Path) else "model"
    return import_program(read_program(file, where), name, where)


def load_object(
    source: object,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> Model:
    """Import a module or an exported program.

    Raises:
        InputError: the example inputs are missing or do not fit the module.
        UnsupportedError: PyTorch cannot export the module, or it uses operators that cannot be
            expressed.
    """
    from crosschip.importers.pytorch.exporting import import_object

    return import_object(source, example_inputs, dynamic_shapes)


def metadata(source: Path | bytes) -> dict[str, str]:
    """Return what a file says about itself: the versions of its format and of PyTorch.

    Raises:
        ModelFileError: the file is damaged.
    """
    from crosschip.importers.pytorch.archive import read_metadata

    file = _find(source)
    return read_metadata(file, str(file) if isinstance(file, Path) else "the model in memory")


def _find(source: Path | bytes) -> Path | bytes:
    """Return the file of a program, or its content."""
    if isinstance(source, bytes):
        return source
    files = _files(source)
    if len(files) > 1:
        listed = ", ".join(file.name for file in files)
        raise ModelFileError(f"{source}: has {len(files)} programs of PyTorch: {listed}; name one")
    return files[0]


def _files(path: Path) -> list[Path]:
    """Return the path if it is a program, or the programs in the folder."""
    try:
        if kind(path) == "folder":
            return [file for file in list_folder(path) if file.suffix.lower() == _SUFFIX]
        return [path] if path.suffix.lower() == _SUFFIX or _is_renamed(path) else []
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None


def _is_renamed(path: Path) -> bool:
    """Return whether a file with another suffix is a program of PyTorch by its content."""
    try:
        with open_regular(path) as file:
            if file.read(len(_ZIP)) != _ZIP:
                return False
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            return _FORMAT in file.read(_TAIL_BYTES)
    except OSError:
        return False
