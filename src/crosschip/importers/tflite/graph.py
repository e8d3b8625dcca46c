"""Conversion of a TensorFlow Lite file to a model: file, inputs, operators, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosschip.flatbuffer import read
from crosschip.flatbuffer.schemas.tflite import Model as File
from crosschip.flatbuffer.schemas.tflite import SignatureDef, TensorMap
from crosschip.importers.locations import located
from crosschip.importers.tflite.operators import TABLE
from crosschip.importers.tflite.state import State
from crosschip.importers.tflite.subgraph import Shared, Subgraph
from crosschip.importers.tflite.tensors import (
    TensorReader,
    declared_type,
    is_complex,
)
from crosschip.importers.tflite.variable_uses import VariableUses, add_uses
from crosschip.ir import Builder, InputError, Model, ModelFileError, UnsupportedError
from crosschip.ir.files import DataFile

_VERSION = 3


def load_model(source: Path | bytes, signature: str | None = None) -> Model:
    """Import a model from a file or its content; see `crosschip.importers.tflite.load`."""
    where = str(source) if isinstance(source, Path) else "the model in memory"
    file, data = read_file(source, where)
    name = source.stem if isinstance(source, Path) else file.subgraphs[0].name or "model"
    with located(where):
        return _import(file, TensorReader(file, data), name, _signature(file, signature))


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


def _import(file: File, reader: TensorReader, name: str, signature: SignatureDef | None) -> Model:
    """Import the subgraph of a signature, or else the first one, and those that it calls."""
    operation_names: set[str] = set()
    shared = Shared(file, reader, operation_names)
    index = 0 if signature is None else signature.subgraph_index
    main = shared.subgraph(index)
    # Subgraphs that only other signatures need are not imported.
    types = [shared.code(operator)[0] for operator in main.operators]
    TABLE.check(f"subgraph {index}", types)
    if main.outputs is None or not len(main.outputs):
        raise ModelFileError("has no outputs; export or download it again")
    builder = Builder(name, used_names=operation_names)
    uses = VariableUses()
    add_uses(uses, shared, index, {})
    state = State(builder, frozenset(uses.assigned))
    subgraph = Subgraph(shared, index, builder, state)
    inputs = _names(subgraph, subgraph.inputs, signature.inputs if signature else ())
    arguments = []
    for index, input_name in zip(subgraph.inputs, inputs, strict=True):
        with located(f"input {input_name!r}"):
            tensor = subgraph.tensor(index)
            if is_complex(tensor):
                raise UnsupportedError("is of complex numbers, which no input can have")
            arguments.append(builder.input(input_name, declared_type(tensor)))
    shared.operand_names.update(inputs)
    subgraph.run(arguments)
    outputs = _names(subgraph, subgraph.outputs, signature.outputs if signature else ())
    for index, output_name in zip(subgraph.outputs, outputs, strict=True):
        if is_complex(subgraph.tensor(index)):
            raise UnsupportedError(f"output {output_name!r} is of complex numbers")
        builder.output(output_name, subgraph.operand(index))
    state.add_outputs()
    return builder.build()


def main_signature(file: File) -> SignatureDef | None:
    """Return the signature of the first subgraph; `None` if it has none."""
    for signature in file.signature_defs:
        if signature.subgraph_index == 0:
            return signature
    return None


def _signature(file: File, name: str | None) -> SignatureDef | None:
    """Return the signature of a name; without one that of the first subgraph, if it has one.

    Raises:
        InputError: the file has no signature of the name.
    """
    if name is None:
        return main_signature(file)
    for signature in file.signature_defs:
        if signature.signature_key == name:
            return signature
    names = ", ".join(repr(each.signature_key) for each in file.signature_defs) or "none"
    raise InputError(f"no signature is called {name!r}; the file's signatures: {names}")


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
