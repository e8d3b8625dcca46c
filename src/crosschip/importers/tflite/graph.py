"""Conversion of a TensorFlow Lite file to a model: file, inputs, operators, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosschip.flatbuffer import read
from crosschip.flatbuffer.schemas.tflite import Model as File
from crosschip.flatbuffer.schemas.tflite import SignatureDef, TensorMap
from crosschip.flatbuffer.schemas.tflite.enumerations import BuiltinOperator
from crosschip.importers.locations import located
from crosschip.importers.tflite.node import TABLE
from crosschip.importers.tflite.operators.variables import key_of
from crosschip.importers.tflite.state import State
from crosschip.importers.tflite.subgraph import Shared, Subgraph
from crosschip.importers.tflite.tensors import (
    TensorReader,
    declared_type,
    is_complex,
)
from crosschip.ir import Builder, Model, ModelFileError, UnsupportedError
from crosschip.ir.files import DataFile

_VERSION = 3


def load_model(source: Path | bytes) -> Model:
    """Import a model from a file or its content; see `crosschip.importers.tflite.load`."""
    where = str(source) if isinstance(source, Path) else "the model in memory"
    file, data = read_file(source, where)
    name = source.stem if isinstance(source, Path) else file.subgraphs[0].name or "model"
    with located(where):
        return _import(file, TensorReader(file, data), name)


def read_file(source: Path | bytes, where: str) -> tuple[File, memoryview]:
    """Return the root of a file, and its bytes.

    Raises:
        ModelFileError: the file cannot be read, is damaged or no such file.
    """
    try:
        if isinstance(source, bytes):
            data = source
        else:
            opened = DataFile(source)
            data = opened.read(0, opened.size)
    except OSError as error:
        raise ModelFileError(f"{where}: cannot be read: {error.strerror or error}") from None
    if not data:
        raise ModelFileError(f"{where}: is empty; export or download it again")
    file = read(File, data, where, (b"TFL3",))
    if file.version != _VERSION:
        raise ModelFileError(f"{where}: is of version {file.version}, not {_VERSION}")
    if not file.subgraphs:
        raise ModelFileError(f"{where}: has no subgraphs; export or download it again")
    return file, memoryview(data)


def _import(file: File, reader: TensorReader, name: str) -> Model:
    """Import the first subgraph, and those that it calls."""
    operation_names: set[str] = set()
    shared = Shared(file, reader, operation_names)
    main = file.subgraphs[0]
    # Subgraphs that only composites and other signatures need are not imported.
    TABLE.check("subgraph 0", [shared.code(operator)[0] for operator in main.operators])
    if main.outputs is None or not len(main.outputs):
        raise ModelFileError("has no outputs; export or download it again")
    builder = Builder(name, used_names=operation_names)
    state = State(builder, _assigned(shared))
    subgraph = Subgraph(shared, 0, builder, state)
    signature = main_signature(file)
    inputs = _names(subgraph, subgraph.inputs, signature.inputs if signature else ())
    arguments = []
    for index, input_name in zip(subgraph.inputs, inputs, strict=True):
        with located(f"input {input_name!r}"):
            tensor = subgraph.tensor(index)
            if is_complex(tensor):
                raise UnsupportedError("is of complex numbers, which no input can have")
            arguments.append(builder.input(input_name, declared_type(tensor)))
    shared.operand_names.update(inputs)
    results = subgraph.run(arguments)
    outputs = _names(subgraph, subgraph.outputs, signature.outputs if signature else ())
    for index, output_name, result in zip(subgraph.outputs, outputs, results, strict=True):
        if is_complex(subgraph.tensor(index)):
            raise UnsupportedError(f"output {output_name!r} is of complex numbers")
        builder.output(output_name, result)
    state.add_outputs()
    return builder.build()


def main_signature(file: File) -> SignatureDef | None:
    """Return the signature of the first subgraph; `None` if it has none."""
    for signature in file.signature_defs:
        if signature.subgraph_index == 0:
            return signature
    return None


def _names(subgraph: Subgraph, indices: Sequence[int], signature: Sequence[TensorMap]) -> list[str]:
    """Return a name for each input or output: the signature's, else the tensor's."""
    by_tensor: dict[int, list[str]] = {}
    for entry in signature:
        by_tensor.setdefault(entry.tensor_index, []).append(entry.name or "")
    names: list[str] = []
    for index in indices:
        listed = by_tensor.get(index, [])
        stem = (listed.pop(0) if listed else "") or subgraph.name(index)
        name, number = stem, 1
        while name in names:
            number += 1
            name = f"{stem}_{number}"
        names.append(name)
    return names


def _assigned(shared: Shared) -> frozenset[str]:
    """Return the keys of variables that the first subgraph assigns."""
    main, handles, assigned = shared.subgraph(0), {}, set()
    for operator in main.operators:
        type_, _ = shared.code(operator)
        if (
            type_ == BuiltinOperator.VAR_HANDLE.name
            and operator.outputs is not None
            and len(operator.outputs)
        ):
            handles[operator.outputs.tolist()[0]] = key_of(operator.builtin_options)
        if (
            type_ == BuiltinOperator.ASSIGN_VARIABLE.name
            and operator.inputs is not None
            and len(operator.inputs)
        ):
            assigned.add(handles.get(operator.inputs.tolist()[0], ""))
    variables = [t.name or "" for t in main.tensors if t.is_variable]
    return frozenset([*assigned, *variables])
