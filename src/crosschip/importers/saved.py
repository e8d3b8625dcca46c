"""Importer of crosschip's serialized models, `.chipm` files (docs/formats.md)."""

from __future__ import annotations

from pathlib import Path

from crosschip.ir import Model, ModelFileError
from crosschip.ir.files import open_regular
from crosschip.ops.definition.serialization import MAGIC, from_bytes


def recognizes(source: Path | bytes) -> bool:
    """Return whether the source is the content or the path of a saved model; folders are not."""
    if isinstance(source, bytes):
        return source.startswith(MAGIC)
    if not source.is_file():
        return False
    try:
        with open_regular(source) as file:
            return bool(file.read(len(MAGIC)) == MAGIC)
    except OSError:
        return False


def metadata(source: Path | bytes) -> dict[str, str]:
    """Return the format."""
    return {"format": "crosschip's serialized model"}


def load(source: Path | bytes) -> Model:
    """Read a saved model.

    Raises:
        ModelFileError: the file is damaged or of another version.
    """
    if isinstance(source, bytes):
        return from_bytes(source, "the saved model")
    try:
        return from_bytes(source.read_bytes(), str(source))
    except OSError as error:
        raise ModelFileError(f"{source}: cannot be read: {error.strerror}") from None
