"""What a TensorFlow Lite file says about itself: signatures, metadata, associated files."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from crosschip.flatbuffer import read
from crosschip.flatbuffer.schemas.tflite import Model as File
from crosschip.flatbuffer.schemas.tflite import SignatureDef
from crosschip.flatbuffer.schemas.tflite_metadata import (
    IDENTIFIER,
    AssociatedFile,
    AudioProperties,
    ImageProperties,
    ModelMetadata,
    NormalizationOptions,
    ScoreThresholdingOptions,
    TensorMetadata,
)
from crosschip.importers.tflite.graph import read_file
from crosschip.ir import Array, ModelFileError

_METADATA, _RUNTIME_VERSION = "TFLITE_METADATA", "min_runtime_version"
_COLOR_SPACES = {1: "RGB", 2: "grayscale"}
_MAX_FILES = 100
_MAX_BYTES = 1 << 16
"""Of an associated file that are read."""
_MAX_LABELS = 10
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
    *(ValueError, EOFError, OSError, OverflowError),
)
"""Raised by the zipfile module for damaged, encrypted and unknown archives."""


def read_metadata(source: Path | bytes) -> dict[str, str]:
    """Return what a file says about itself; see `crosschip.importers.tflite.metadata`."""
    where = str(source) if isinstance(source, Path) else "the model in memory"
    file, data = read_file(source, where)
    fields = {"format": f"TensorFlow Lite, version {file.version}"}
    fields["description"] = file.description or ""
    for signature in file.signature_defs:
        fields[f"signature {signature.signature_key or ''}".strip()] = _signature(signature)
    contents = {each.name or "": _content(file, each.buffer, data) for each in file.metadata}
    version = bytes(contents.pop(_RUNTIME_VERSION, b"")).rstrip(b"\0")
    fields["minimum runtime version"] = version.decode(errors="replace")
    fields |= _described(contents.pop(_METADATA, memoryview(b"")), where)
    fields["other metadata"] = ", ".join(sorted(contents))
    fields |= _associated_files(data)
    return {name: value for name, value in fields.items() if value}


def _signature(signature: SignatureDef) -> str:
    inputs, outputs = (
        ", ".join(each.name or "" for each in tensors)
        for tensors in (signature.inputs, signature.outputs)
    )
    return f"{inputs or 'nothing'} to {outputs or 'nothing'}"


def _content(file: File, index: int, data: memoryview) -> memoryview:
    """Return the bytes of a buffer; empty if it is not in the file."""
    if index >= len(file.buffers):
        return memoryview(b"")
    buffer = file.buffers[index]
    if buffer.data is not None:
        return memoryview(buffer.data.data)
    return data[buffer.offset : buffer.offset + buffer.size]


def _described(content: memoryview, where: str) -> dict[str, str]:
    """Return what the metadata says about the model, its inputs and outputs."""
    if not content:
        return {}
    try:
        metadata = read(ModelMetadata, content, f"{where}: its metadata", (IDENTIFIER,))
        return dict(_model_fields(metadata))
    except ModelFileError as error:  # nothing that is computed depends on it
        return {"metadata": f"cannot be read: {error}"}


def _model_fields(metadata: ModelMetadata) -> Iterator[tuple[str, str]]:
    yield "name", metadata.name or ""
    yield "documentation", metadata.description or ""
    yield "model version", metadata.version or ""
    yield "author", metadata.author or ""
    yield "license", metadata.license or ""
    for graph in metadata.subgraph_metadata[:1]:
        for kind, tensors in (
            ("input", graph.input_tensor_metadata),
            ("output", graph.output_tensor_metadata),
        ):
            for index, tensor in enumerate(tensors):
                yield f"{kind} {tensor.name or index}", "; ".join(filter(None, _tensor(tensor)))


def _tensor(tensor: TensorMetadata) -> Iterator[str]:
    """Yield what the metadata says about an input or output."""
    yield tensor.description or ""
    content = tensor.content.content_properties if tensor.content else None
    if isinstance(content, ImageProperties):
        yield f"{_COLOR_SPACES.get(content.color_space, '')} image".strip()
        if content.default_size:
            yield f"of {content.default_size.width} x {content.default_size.height} pixels"
    if isinstance(content, AudioProperties):
        yield f"sound of {content.sample_rate} Hz and {content.channels} channels"
    for unit in tensor.process_units:
        if isinstance(unit.options, NormalizationOptions):
            mean, deviation = _numbers(unit.options.mean), _numbers(unit.options.std)
            yield f"normalized with mean {mean} and standard deviation {deviation}"
        if isinstance(unit.options, ScoreThresholdingOptions):
            yield f"scores from {unit.options.global_score_threshold:g}"
    if tensor.stats and tensor.stats.min is not None and tensor.stats.max is not None:
        yield f"values from {_numbers(tensor.stats.min)} to {_numbers(tensor.stats.max)}"
    yield _files(tensor.associated_files)


def _numbers(values: Array | None) -> str:
    return ", ".join(f"{value:g}" for value in ([] if values is None else values.tolist()))


def _files(files: Sequence[AssociatedFile]) -> str:
    names = ", ".join(file.name or "" for file in files)
    return f"files: {names}" if names else ""


def _associated_files(data: memoryview) -> dict[str, str]:
    """Return the associated files, a zip file at the end, with the first lines of texts."""
    stream = io.BytesIO(data)
    if not zipfile.is_zipfile(stream):
        return {}
    try:
        with zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()[:_MAX_FILES]
            return {f"file {info.filename}": _file(archive, info) for info in infos}
    except _ZIP_ERRORS as error:
        return {"associated files": f"cannot be read: {error}"}


def _file(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """Describe an associated file: its size, and the labels of a text."""
    size = f"{info.file_size} bytes"
    if not info.filename.endswith(".txt"):
        return size
    with archive.open(info) as file:
        lines = file.read(_MAX_BYTES).decode(errors="replace").split("\n")
    labels = [line.strip() for line in lines if line.strip()]
    listed = ", ".join(labels[:_MAX_LABELS])
    return f"{size}: {listed}{', …' if len(labels) > _MAX_LABELS else ''}"
