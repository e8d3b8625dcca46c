"""The importer of ONNX models: `.onnx` files of opset 7 or later, with or without external data.

Large weights of a model stay in its file until they are needed; the rest of the file is small and
is parsed by the onnx library.
"""

from __future__ import annotations

from pathlib import Path

from crosschip.ir import Model, ModelFileError
from crosschip.ir.file_queries import kind, list_folder

_OTHERS = (b"\n", b"{", b"\x93", b"\0\0", b"\1\0", b"\2\0")
"""The beginnings of other sorts of files, with which no ONNX file begins."""


def recognizes(source: Path | bytes) -> bool:
    """Tell whether it is the path of an `.onnx` file, of a folder with one, or a file's content.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    if isinstance(source, bytes):
        return not source.startswith(_OTHERS)
    return bool(_models(source))


def load(source: Path | bytes) -> Model:
    """Import an ONNX model.

    What standard operators do not express stays in it as extension operations, which a device for
    ONNX's own operators runs.

    Args:
        source: the `.onnx` file, in whose folder external data are sought; a folder with one; or
            the content of the file.

    Raises:
        ModelFileError: the file, or one with its external data, is missing, damaged, or breaks a
            rule of ONNX; the message names the file and the node.
        UnsupportedError: it uses an opset, an operator, or a variant of one that is not known, or
            inputs that are sparse or opaque.
    """
    from crosschip.importers.onnx.graph import load_model

    if isinstance(source, bytes):
        return load_model(source)
    files = _models(source)
    if len(files) > 1:
        listed = ", ".join(file.name for file in files)
        raise ModelFileError(f"{source}: has {len(files)} ONNX models: {listed}; name one")
    return load_model(*files)


def _models(path: Path) -> list[Path]:
    """The models at a path: it itself, or those in the folder that it is."""
    try:
        candidates = list_folder(path) if kind(path) == "folder" else [path]
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    return [
        file for file in candidates if file.suffix.lower() == ".onnx" and kind(file) != "folder"
    ]
