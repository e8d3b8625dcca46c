"""Importer of TensorFlow Lite models: `.tflite` files, read without TensorFlow."""

from __future__ import annotations

from pathlib import Path

from crosschip.importers.model_files import model_files, single_model
from crosschip.ir import Model
from crosschip.ir.file_queries import kind
from crosschip.ir.files import DataFile

_IDENTIFIER = b"TFL3"


def recognizes(source: Path | bytes) -> bool:
    """Return whether the source is a `.tflite` file, a folder with one, or content of one.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    if isinstance(source, bytes):
        return source[4:8] == _IDENTIFIER
    return bool(model_files(source, ".tflite")) or _has_identifier(source)


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

    return load_model(single_model(source, ".tflite", "TensorFlow Lite"))


def load_signature(source: Path | bytes, signature: str) -> Model:
    """Import one of a model's signatures; see `load`.

    Raises:
        InputError: the model has no signature of the name.
    """
    from crosschip.importers.tflite.graph import load_model

    return load_model(single_model(source, ".tflite", "TensorFlow Lite"), signature)


def metadata(source: Path | bytes) -> dict[str, str]:
    """Return what a model says about itself: signatures, description, labels and the like.

    Raises:
        ModelFileError: the file is missing or damaged.
    """
    from crosschip.importers.tflite.file_metadata import read_metadata

    return read_metadata(single_model(source, ".tflite", "TensorFlow Lite"))


def _has_identifier(path: Path) -> bool:
    """Return whether a file begins as TensorFlow Lite models do, whatever its suffix is."""
    try:
        if kind(path) == "folder":
            return False
        file = DataFile(path)
        return file.size > 8 and file.read(4, 8) == _IDENTIFIER
    except OSError:
        return False
