"""Importer of TensorFlow Lite models: `.tflite` files, read without TensorFlow."""

from __future__ import annotations

from pathlib import Path

from crosschip.ir import Model, ModelFileError
from crosschip.ir.file_queries import kind, list_folder
from crosschip.ir.files import DataFile

_IDENTIFIER = b"TFL3"


def recognizes(source: Path | bytes) -> bool:
    """Return whether the source is a `.tflite` file, a folder with one, or content of one.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    if isinstance(source, bytes):
        return source[4:8] == _IDENTIFIER
    return bool(_models(source))


def load(source: Path | bytes) -> Model:
    """Import a TensorFlow Lite model.

    Inputs and outputs have the names of the model's signature, if it has one, else those of the
    tensors. Variables become inputs `past.NAME` and outputs `present.NAME`, which a session passes
    from run to run.

    Args:
        source: the `.tflite` file; a folder with one such file; or the content of the file.

    Raises:
        ModelFileError: the file is missing, damaged, or breaks a rule of TensorFlow Lite; the
            message names the file and the operator.
        UnsupportedError: the model uses an unknown operator, operator variant, or strings.
    """
    from crosschip.importers.tflite.graph import load_model

    return load_model(_find(source))


def metadata(source: Path | bytes) -> dict[str, str]:
    """Return what a model says about itself: signatures, description, labels and the like.

    Raises:
        ModelFileError: the file is missing or damaged.
    """
    from crosschip.importers.tflite.file_metadata import read_metadata

    return read_metadata(_find(source))


def _find(source: Path | bytes) -> Path | bytes:
    """Return the file of a model, or its content."""
    if isinstance(source, bytes):
        return source
    files = _models(source)
    if len(files) > 1:
        listed = ", ".join(file.name for file in files)
        raise ModelFileError(f"{source}: has {len(files)} TensorFlow Lite models: {listed}")
    return files[0]


def _models(path: Path) -> list[Path]:
    """Return the path if it is a model, or the models in the folder."""
    try:
        if kind(path) != "folder":
            return [path] if _is_model(path) else []
        return [file for file in list_folder(path) if file.suffix.lower() == ".tflite"]
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None


def _is_model(path: Path) -> bool:
    """Return whether a file has the suffix or the identifier of a model."""
    if path.suffix.lower() == ".tflite":
        return True
    try:
        file = DataFile(path)
        return file.size > 8 and file.read(4, 8) == _IDENTIFIER
    except OSError:
        return False
