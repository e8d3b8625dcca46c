"""The importer of ONNX models: `.onnx` files of opset 7 or later, with or without external data.

The weights of a model stay in its file, mapped into memory, wherever an array can lie there; the
rest of the file is small and is parsed by the onnx library.
"""

from __future__ import annotations

from pathlib import Path

from crosschip.ir import Model


def recognizes(path: Path) -> bool:
    """Whether the path is that of an `.onnx` file."""
    return path.suffix.lower() == ".onnx" and path.is_file()


def load(path: Path) -> Model:
    """Import an ONNX model.

    What standard operators do not express stays in it as extension operations, which a device for
    ONNX's own operators runs.

    Args:
        path: the `.onnx` file; external data are sought in its folder.

    Raises:
        ModelFileError: the file, or one with its external data, is missing, damaged, or breaks a
            rule of ONNX; the message names the file and the node.
        UnsupportedError: it uses an opset, an operator, or a variant of one that is not known, or
            inputs that are sparse or opaque.
    """
    from crosschip.importers.onnx.graph import load_model

    return load_model(path)
