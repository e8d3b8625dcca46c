"""Importers: conversion of frameworks' model files to models of standard operators.

No framework is needed. An importer is an entry point of the group `crosschip.importers`: a module
with the two functions of `Importer`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from crosschip.importers.packages import with_overriding
from crosschip.ir import Budget, BudgetError, InputError, Model, ModelFileError
from crosschip.ir.budget import spending
from crosschip.ir.entry_points import entry_points
from crosschip.ir.files import DataFile
from crosschip.progress import task

Source = Path | bytes
"""A file or folder, or the content of a file."""


class Importer(Protocol):
    """Interface of an importer's module. Importing the module must be cheap.

    A function `metadata`, which returns what a source says about itself as texts by name, is
    optional; `crosschip info` shows these.
    """

    def recognizes(self, source: Source) -> bool:
        """Return whether this importer reads the source, an existing file or folder or content."""

    def load(self, source: Source) -> Model:
        """Import the model.

        Raises:
            ModelFileError: the file is damaged or incomplete; the message names the file.
            UnsupportedError: the model uses operators or variants that cannot be expressed.
        """


class SignatureImporter(Importer, Protocol):
    """Interface of an importer's module for files of which each has several signatures."""

    def load_signature(self, source: Source, signature: str) -> Model:
        """Import one of a model's signatures.

        Raises:
            InputError: the model has no signature of the name.
        """


class ObjectImporter(Importer, Protocol):
    """Interface of an importer's module that also takes a framework's objects in memory."""

    def recognizes_object(self, source: object) -> bool:
        """Return whether this importer takes an object, without importing the framework."""

    def load_object(
        self,
        source: object,
        example_inputs: Sequence[Any] | Mapping[str, Any] | None,
        dynamic_shapes: Any,
    ) -> Model:
        """Import the model; see `load` for the arguments.

        Raises:
            InputError: the example inputs are missing or do not fit the object.
            UnsupportedError: the model uses operators or variants that cannot be expressed.
        """


def load(
    source: str | os.PathLike[str] | bytes | BinaryIO | Any,
    *,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    signature: str | None = None,
    budget: Budget | None = None,
) -> Model:
    """Import a model from a framework's file or object, or from a folder that holds one such file.

    Large weights stay in the file until they are needed. Do not write to the file while the model
    is in use; moving, removing or replacing the file is safe.

    Args:
        source: the path of a file or folder; or the content of a file, as bytes, as a file that is
            open for reading bytes, or as an `onnx.ModelProto`; or a `torch.nn.Module` or a
            `torch.export.ExportedProgram`.
        example_inputs: for a `torch.nn.Module`: the arguments of its `forward`, as a tuple, or by
            name.
        dynamic_shapes: for a `torch.nn.Module`: the dynamic dimensions of its inputs, as
            `torch.export.export` takes them, or with names in place of `torch.export.Dim`.
        signature: for a `.tflite` file: the name of one of its signatures; by default that of the
            first subgraph.
        budget: the largest cost of importing; `None` for the default.

    Raises:
        BudgetError: the model costs more than the budget allows.
        InputError: the source has an unsupported type, or the other arguments do not fit it.
        ModelFileError: the file does not exist, no importer reads it, or it is damaged.
        UnsupportedError: the model uses operators or variants that cannot be expressed.
    """
    importers = _importers()
    object_importer = _object_importer(importers.values(), source)
    if object_importer is not None:
        if signature is not None:
            raise InputError("signature is for .tflite files; leave it out")
        with task(f"loading a {type(source).__name__}"), spending(budget):
            model = object_importer.load_object(source, example_inputs, dynamic_shapes)
            return with_overriding(model)
    content_or_path = _source(source)
    where = str(content_or_path) if isinstance(content_or_path, Path) else "the model in memory"
    if example_inputs is not None or dynamic_shapes is not None:
        raise InputError(
            f"{where}: example_inputs and dynamic_shapes are for a torch.nn.Module; leave them out"
        )
    if isinstance(content_or_path, Path):
        _check_exists(content_or_path)
    matching = {name: i for name, i in importers.items() if i.recognizes(content_or_path)}
    if len(matching) > 1:
        raise ModelFileError(f"{where}: has models for {' and '.join(matching)}; name the file")
    for importer in matching.values():
        try:
            with task(f"loading {where}"), spending(budget):
                return with_overriding(_load(importer, content_or_path, signature, where))
        except BudgetError as error:
            raise BudgetError(f"{where}: {error}") from None
        except ModelFileError:
            if not (isinstance(content_or_path, Path) and content_or_path.is_dir()):
                _check_format(content_or_path, where)
            raise
    if isinstance(content_or_path, Path) and content_or_path.is_file():
        _check_readable(content_or_path)
    _check_format(content_or_path, where)
    raise ModelFileError(
        f"{where}: is not a model file that an importer knows ({', '.join(importers)}); "
        f"give a .pdmodel, a Paddle 3 .json, a .nb, an .onnx, .tflite or .pt2 file, or a folder "
        f"with one of them"
    )


def file_metadata(source: str | os.PathLike[str] | bytes) -> dict[str, str]:
    """Return what a model's file says about itself: format, opset, producer and the like.

    Args:
        source: the path of a file or folder, or the content of a file, which `load` reads.

    Raises:
        ModelFileError: no importer reads it, or it is damaged.
    """
    content_or_path = _source(source)
    for importer in _importers().values():
        if importer.recognizes(content_or_path):
            # Importers of other packages need not have the function.
            read = getattr(importer, "metadata", None)
            return {} if read is None else dict(read(content_or_path))
    raise ModelFileError(f"{source!r}: is not a model file that an importer knows")


def _importers() -> dict[str, Importer]:
    """Return the importers by name, in alphabetic order."""
    entries = sorted(entry_points("crosschip.importers"), key=lambda entry: entry.name)
    return {entry.name: cast(Importer, entry.load()) for entry in entries}


def _object_importer(importers: Iterable[Importer], source: object) -> ObjectImporter | None:
    """Return the importer of an object; `None` if none takes it."""
    for importer in importers:
        if hasattr(importer, "recognizes_object"):
            candidate = cast(ObjectImporter, importer)
            if candidate.recognizes_object(source):
                return candidate
    return None


def _load(importer: Importer, source: Source, signature: str | None, where: str) -> Model:
    """Import a model, or one of its signatures."""
    if signature is None:
        return importer.load(source)
    if not hasattr(importer, "load_signature"):
        raise InputError(f"{where}: signature is for .tflite files; leave it out")
    try:
        return cast(SignatureImporter, importer).load_signature(source, signature)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _check_format(source: Source, where: str) -> None:
    """Raise a `ModelFileError` with advice if the format is known but no importer reads it."""
    # Imported on failure only: the import takes time.
    from crosschip.importers.foreign import error_sentence

    sentence = error_sentence(source)
    if sentence is not None:
        raise ModelFileError(f"{where}: {sentence}") from None


def _source(source: Any) -> Source:
    """Return the source as a path or as bytes."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if isinstance(path, str) and "\0" not in path:
            return Path(path)
    elif isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    elif callable(getattr(source, "read", None)):
        content = source.read()
        if isinstance(content, bytes):
            return content
        raise InputError(f"{source!r} is not open for reading bytes; open it with mode 'rb'")
    elif getattr(getattr(source, "DESCRIPTOR", None), "full_name", None) == "onnx.ModelProto":
        try:
            return cast(bytes, source.SerializeToString())
        except Exception as error:  # protobuf's EncodeError, for a model of over two gigabytes
            raise InputError(
                f"the onnx.ModelProto cannot be serialized ({error}); save it with its weights "
                f"as external data, and give the path"
            ) from None
    from crosschip.importers.foreign import format_of_object

    foreign_format = format_of_object(source)
    if foreign_format is not None:
        raise InputError(f"the {type(source).__name__} that was given {foreign_format.sentence()}")
    raise InputError(
        f"{source!r} is no model; give a path, bytes, a file that is open for reading bytes, "
        f"an onnx.ModelProto, or a torch.nn.Module"
    )


def _check_exists(path: Path) -> None:
    try:
        path.stat()
    except FileNotFoundError:
        raise ModelFileError(f"{path}: there is no such file or folder") from None
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None


def _check_readable(path: Path) -> None:
    try:
        DataFile(path)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
