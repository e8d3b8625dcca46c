"""From an ONNX file to a model: the file, its graph, and each node by its function."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto, ValueInfoProto

from crosschip.importers.onnx.node import Node
from crosschip.importers.onnx.operators import TABLE
from crosschip.importers.onnx.sizes import Sizes
from crosschip.importers.onnx.tensors import TensorReader, element_type, text
from crosschip.importers.onnx.wire import without_weights
from crosschip.ir import (
    Builder,
    Model,
    ModelError,
    ModelFileError,
    Operand,
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.ops.slots import ComputedParameter

OPSETS = range(7, 29)
"""The versions of the standard operator set that the functions are written after."""

_STANDARD_DOMAINS = ("", "ai.onnx")


def load_model(path: Path) -> Model:
    """Import the model in a file; see `crosschip.importers.onnx.load`."""
    try:
        reader = TensorReader(path)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    with reader:
        if not reader.model_file.size:
            raise ModelFileError(f"{path}: is empty; export or download it again")
        try:
            proto = ModelProto.FromString(without_weights(memoryview(reader.model_file.mapping)))
        except DecodeError:
            raise ModelFileError(
                f"{path}: is damaged or not an ONNX model; export or download it again"
            ) from None
        return _GraphImport(path, proto, reader).model()


class _GraphImport:
    """The import of one model's graph, in the order of its nodes."""

    def __init__(self, path: Path, proto: ModelProto, reader: TensorReader) -> None:
        self._path = path
        self._graph = proto.graph
        self._opset = _opset(path, proto)
        self._reader = reader
        self._builder = Builder(text(self._graph.name) or path.stem)
        self._sizes = Sizes()
        self._operands: dict[str, Operand] = {}
        self._initializers = {text(tensor.name): tensor for tensor in self._graph.initializer}
        self._not_computed: set[str] = set()
        self._operation_names: set[str] = set()

    def model(self) -> Model:
        self._check()
        for value in self._graph.input:
            name = text(value.name)
            if name not in self._initializers:
                with located(f"{self._path}: input {name!r}"):
                    self._operands[name] = self._input(name, value)
        for number, node in enumerate(self._graph.node):
            what = f"{text(node.op_type)} {text(node.name)!r}"
            with located(f"{self._path}: node {number} ({what})"):
                self._import(number, node)
        for value in self._graph.output:
            name = text(value.name)
            with located(f"{self._path}: output {name!r}"):
                self._builder.output(name, self._operand(name))
        return self._builder.build()

    def _check(self) -> None:
        """Refuse what is plain before any node is looked at."""
        if not self._graph.output:
            raise ModelFileError(f"{self._path}: has no outputs; export or download it again")
        if self._graph.sparse_initializer:
            raise UnsupportedError(f"{self._path}: has sparse weights; export it with dense ones")
        TABLE.check(str(self._path), map(_full_name, self._graph.node))

    def _input(self, name: str, value: ValueInfoProto) -> Operand:
        if not value.type.HasField("tensor_type"):
            raise UnsupportedError("is not declared as a tensor")
        tensor = value.type.tensor_type
        shape = self._sizes.shape(tensor.shape) if tensor.HasField("shape") else None
        return self._builder.input(name, TensorType(element_type(tensor.elem_type), shape))

    def _import(self, number: int, proto: NodeProto) -> None:
        """Add the operations that a node stands for."""
        if not proto.output:
            raise ModelError("has no outputs")
        before = len(self._builder.operations)
        inputs = [self._operand(text(name)) if name else None for name in proto.input]
        names = self._names(number, proto)
        node = Node(proto, self._opset, inputs, self._builder, names, self._reader)
        results = TABLE[node.type](node)
        node.finish()
        self._bind(node, [results] if isinstance(results, Operand) else results, before)

    def _operand(self, name: str) -> Operand:
        """The operand of a name; an initializer is read when it is first asked for."""
        if name in self._operands:
            return self._operands[name]
        if name in self._not_computed:
            raise UnsupportedError(f"{name!r} is an output that is not computed here")
        if name not in self._initializers:
            raise ModelError(f"{name!r} is read, but nothing before makes it")
        with located(f"initializer {name!r}"):
            operand = constant(self._reader.array(self._initializers[name]), name)
        self._operands[name] = operand
        return operand

    def _bind(self, node: Node, results: Sequence[Operand], before: int) -> None:
        """Give the results the names that the file has for them."""
        operations = self._builder.operations[before:]
        made = {operand for operation in operations for operand in operation.outputs}
        for name, operand in itertools.zip_longest(node.outputs, results[: len(node.outputs)]):
            if not name:
                continue
            if name in self._operands or name in self._initializers:
                raise ModelError(f"makes {name!r}, which is there already")
            if operand is None:
                self._not_computed.add(name)
                continue
            self._operands[name] = operand
            if operand in made:
                operand.name = name

    def _names(self, number: int, proto: NodeProto) -> Iterator[str]:
        """Names for the operations of a node: the node's own for the first."""
        stem = text(proto.name)
        if not stem or stem in self._operation_names:
            stem = f"{stem or text(proto.op_type)}_{number}"
        for name in itertools.chain([stem], (f"{stem}.{i}" for i in itertools.count(1))):
            if name not in self._operation_names:
                self._operation_names.add(name)
                yield name


@contextmanager
def located(place: str) -> Iterator[None]:
    """Say where it is, when something is refused.

    Raises:
        ModelFileError: what is inside breaks a rule, of ONNX or of a standard operator.
        UnsupportedError: what is inside cannot be expressed.
    """
    try:
        yield
    except (UnsupportedError, ComputedParameter) as error:
        raise UnsupportedError(f"{place}: {error}") from None
    except (ModelError, ModelFileError) as error:
        raise ModelFileError(f"{place}: {error}") from None


def _full_name(node: NodeProto) -> str:
    domain, name = text(node.domain), text(node.op_type)
    return name if domain in _STANDARD_DOMAINS else f"{domain}.{name}"


def _opset(path: Path, proto: ModelProto) -> int:
    """The version of the standard operator set that the model uses."""
    for entry in proto.opset_import:
        if text(entry.domain) in _STANDARD_DOMAINS:
            if entry.version not in OPSETS:
                raise UnsupportedError(
                    f"{path}: uses opset {entry.version}, but {OPSETS[0]} to {OPSETS[-1]} can be "
                    f"imported; convert it with onnx.version_converter"
                )
            return entry.version
    raise ModelFileError(f"{path}: does not say which opset it uses; export or download it again")
