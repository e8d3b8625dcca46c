"""Importer of ONNX models: `.onnx` files of opset 7 or later, with or without external data.

Large weights stay in the file until they are needed; the onnx library parses the rest.
"""

from __future__ import annotations

from pathlib import Path

from crosschip.importers.model_files import model_files, single_model
from crosschip.ir import Model

_OTHERS = (b"\n", b"{", b"\x93", b"PK\x03\x04", b"\0\0", b"\1\0", b"\2\0")
"""First bytes of other file formats; no ONNX file begins with them."""

_IDENTIFIERS = (b"TFL3",)
"""Bytes 4 to 8 of files in the FlatBuffers format."""


def recognizes(source: Path | bytes) -> bool:
    """Return whether the source is an `.onnx` file, a folder with one, or plausible content of one.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    if isinstance(source, bytes):
        return not source.startswith(_OTHERS) and source[4:8] not in _IDENTIFIERS
    return bool(model_files(source, ".onnx"))


def load(source: Path | bytes) -> Model:
    """Import an ONNX model.

    Nodes that standard operators cannot express become extension operations, which run on devices
    that execute ONNX operators.

    Args:
        source: the `.onnx` file, with external data in the same folder; a folder with one such
            file; or the content of the file.

    Raises:
        ModelFileError: the file or its external data is missing, damaged, or breaks a rule of ONNX;
            the message names the file and the node.
        UnsupportedError: the model uses an unknown opset, operator or operator variant, or sparse
            or opaque inputs.
    """
    from crosschip.importers.onnx.graph import load_model

    return load_model(single_model(source, ".onnx", "ONNX"))


def metadata(source: Path | bytes) -> dict[str, str]:
    """Return what a model says about itself: opset, producer, documentation and the like.

    Raises:
        ModelFileError: the file is missing or damaged.
    """
    from crosschip.importers.onnx.graph import read_metadata

    return read_metadata(single_model(source, ".onnx", "ONNX"))
