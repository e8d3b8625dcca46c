"""The model file that a path names, or the one in a folder."""

from __future__ import annotations

from pathlib import Path

from crosschip.ir import ModelFileError
from crosschip.ir.file_queries import kind, list_folder


def files_at(path: Path) -> list[Path]:
    """Return the path itself, or the files and folders in it if it is a folder.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    try:
        return list_folder(path) if kind(path) == "folder" else [path]
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None


def model_files(path: Path, suffix: str) -> list[Path]:
    """Return the path if it is a file with a suffix, or such files in the folder.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    return [
        file for file in files_at(path) if file.suffix.lower() == suffix and kind(file) != "folder"
    ]


def single_model(source: Path | bytes, suffix: str, format: str) -> Path | bytes:
    """Return the file of a model, or its content; the path itself if no file has the suffix.

    Args:
        source: a file, a folder, or the content of a file.
        suffix: the suffix of model files.
        format: the name of the format, for the message.

    Raises:
        ModelFileError: the folder cannot be read, or has several models.
    """
    if isinstance(source, bytes):
        return source
    files = model_files(source, suffix)
    if len(files) > 1:
        listed = ", ".join(file.name for file in files)
        raise ModelFileError(f"{source}: has {len(files)} {format} models: {listed}; name one")
    return files[0] if files else source
