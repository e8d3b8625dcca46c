"""Conversion of an ONNX file to a model: file, graph inputs, nodes, graph outputs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from google.protobuf.message import DecodeError

from crosschip.importers.locations import located
from crosschip.importers.onnx.functions import is_same
from crosschip.importers.onnx.opaque import CONTAINER, is_container
from crosschip.importers.onnx.operators import TABLE
from crosschip.importers.onnx.schemas import domain_of, schema_of
from crosschip.importers.onnx.scope import Scope, is_packaged
from crosschip.importers.onnx.shared import Shared, full_name, opsets_of
from crosschip.importers.onnx.tensors import TensorReader, element_type_or_string, text
from crosschip.importers.onnx.wire import without_weights
from crosschip.ir import (
    Builder,
    Model,
    ModelFileError,
    Operand,
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.ir.files import DataFile, Held, Source
from crosschip.onnx_messages import ModelProto, NodeProto, TypeProto, ValueInfoProto

logger = logging.getLogger("crosschip")

_NAMED_IN_TRAINING = 3
"""The number of nodes that the warning about training mode lists at most."""

OPSETS = range(7, 29)
"""The versions of the standard operator set that can be imported."""

_ENGINE_DOMAINS = ("com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc")
"""Domains of engines' operators, for which ONNX has no schemas."""


def load_model(
    source: Path | bytes, where: str = "", external: Mapping[str, bytes] | None = None
) -> Model:
    """Import a model from a file or its content; see `crosschip.importers.onnx.load`.

    Args:
        source: the file or its content.
        where: names the model in errors; empty for the path.
        external: external data in memory, by location.
    """
    path = source if isinstance(source, Path) else None
    where = where or str(path or "the model in memory")
    model, proto = _read(source, where)
    name = path.stem if path is not None else text(proto.graph.name) or "model"
    return _ModelImport(where, name, proto, TensorReader(model, path, external or {})).model()


def read_metadata(source: Path | bytes) -> dict[str, str]:
    """Return what a file says about itself; see `crosschip.importers.onnx.metadata`."""
    where = str(source) if isinstance(source, Path) else "the model in memory"
    _, proto = _read(source, where)
    opsets = opsets_of(proto.opset_import)
    fields = {
        "format": f"ONNX, IR version {proto.ir_version}",
        "opset": ", ".join(f"{domain or 'ai.onnx'} {opsets[domain]}" for domain in opsets),
        "producer": f"{text(proto.producer_name)} {text(proto.producer_version)}".strip(),
        "domain": text(proto.domain),
        "model version": str(proto.model_version or ""),
        "graph": text(proto.graph.name),
        "documentation": text(proto.doc_string),
        "functions": str(len(proto.functions) or ""),
    }
    fields |= {f"metadata {text(e.key)}": text(e.value) for e in proto.metadata_props}
    return {name: value for name, value in fields.items() if value}


def _read(source: Path | bytes, where: str) -> tuple[Source, ModelProto]:
    """Open a file and parse all of it but large weights."""
    try:
        model: Source = Held(source) if isinstance(source, bytes) else DataFile(source)
        if not model.size:
            raise ModelFileError(f"{where}: is empty; export or download it again")
        proto = ModelProto.FromString(without_weights(model))
    except OSError as error:
        raise ModelFileError(f"{where}: cannot be read: {error.strerror or error}") from None
    except DecodeError:
        raise ModelFileError(
            f"{where}: is damaged or not an ONNX model; export or download it again"
        ) from None
    return model, proto


class _ModelImport:
    """Import of one model."""

    def __init__(self, path: str, name: str, proto: ModelProto, reader: TensorReader) -> None:
        self._path = path
        self._graph = proto.graph
        self._opsets = _opsets(path, proto)
        used_names: set[str] = set()
        self._builder = Builder(name, used_names=used_names)
        with located(path):
            self._shared = Shared(proto.ir_version, reader, proto.functions, used_names)
        self._scope = Scope(self._shared, self._opsets, self._builder)

    def model(self) -> Model:
        self._check()
        with located(self._path):
            self._scope.initialize(self._graph.initializer)
        self._scope.declare([*self._graph.value_info, *self._graph.output])
        constants = {text(tensor.name) for tensor in self._graph.initializer}
        for tensor in self._graph.sparse_initializer:
            name = text(tensor.values.name)
            if name in constants:
                raise ModelFileError(f"{self._path}: two initializers are called {name!r}")
            with located(f"{self._path}: sparse initializer {name!r}"):
                self._scope.define(name, constant(self._scope.dense(tensor), name))
            constants.add(name)
        for value in self._graph.input:
            name = text(value.name)
            if name not in constants:
                with located(f"{self._path}: input {name!r}"):
                    self._scope.define(name, self._input(name, value))
        outputs = [text(value.name) for value in self._graph.output]
        self._scope.require_functions(self._graph.node)
        self._scope.run(self._graph.node, outputs, f"{self._path}: ")
        for value in self._graph.output:
            name = text(value.name)
            with located(f"{self._path}: output {name!r}"):
                operand = self._scope.output(name)
                _check_declared(value.type, operand.type)
                self._builder.output(name, operand)
        self._warn_of_training()
        return self._builder.build()

    def _warn_of_training(self) -> None:
        names = list(self._shared.in_training)
        if names:
            listed = ", ".join(map(repr, names[:_NAMED_IN_TRAINING]))
            unnamed = len(names) - _NAMED_IN_TRAINING
            more = f" and {unnamed} more" if unnamed > 0 else ""
            logger.warning(
                f"{self._path}: was exported in training mode (Dropout draws random numbers, "
                f"BatchNormalization normalizes by each batch's own statistics): {listed}{more}; "
                f"call model.eval() and export it again"
            )

    def _check(self) -> None:
        """Raise on missing outputs and unknown operators before importing any node."""
        if not self._graph.output:
            raise ModelFileError(f"{self._path}: has no outputs; export or download it again")
        unknown = (full_name(node) for node in self._graph.node if not self._is_known(node))
        TABLE.check(self._path, unknown)

    def _is_known(self, node: NodeProto) -> bool:
        """Return whether a node's operator is known, be it only as an operator of an engine."""
        return (
            full_name(node) in TABLE
            or is_packaged(node)
            or text(node.domain) in _ENGINE_DOMAINS
            or self._shared.function(node) is not None
            or schema_of(node, self._opsets.get(text(node.domain), 1)) is not None
        )

    def _input(self, name: str, value: ValueInfoProto) -> Operand:
        if is_container(value.type):
            operand = self._builder.input(name, CONTAINER)
            self._scope.contain(operand, value.type)
            return operand
        if not value.type.HasField("tensor_type"):
            raise UnsupportedError("is not declared as a tensor, sequence, map or optional value")
        tensor = value.type.tensor_type
        shape = self._shared.sizes.shape(tensor.shape) if tensor.HasField("shape") else None
        return self._builder.input(
            name, TensorType(element_type_or_string(tensor.elem_type), shape)
        )


def _check_declared(declared: TypeProto, type_: TensorType) -> None:
    """Raise a `ModelFileError` if an output is declared with another element type.

    Declared shapes are ignored: exporters write those from before a conversion, and runtimes infer
    their own.
    """
    if not declared.HasField("tensor_type") or type_ == CONTAINER:
        return
    tensor = declared.tensor_type
    if tensor.elem_type and element_type_or_string(tensor.elem_type) is not type_.element_type:
        raise ModelFileError(
            f"is declared as {element_type_or_string(tensor.elem_type)}, but is {type_}"
        )


def _opsets(path: str, proto: ModelProto) -> dict[str, int]:
    """Return the opset version per domain.

    A standard opset before `OPSETS` counts as the first of `OPSETS` if all operators of the model
    have the same version in both.
    """
    versions = opsets_of(proto.opset_import)
    if not versions:
        raise ModelFileError(
            f"{path}: does not say which opset it uses; export or download it again"
        )
    version = versions.get("")
    if version is None:
        if any(not domain_of(node) for node in proto.graph.node):
            raise ModelFileError(
                f"{path}: does not say which opset it uses; export or download it again"
            )
        return {"": OPSETS[0], **versions}
    if 1 <= version < OPSETS[0] and all(is_same(n, version, OPSETS[0]) for n in proto.graph.node):
        return {**versions, "": OPSETS[0]}
    if version not in OPSETS:
        raise UnsupportedError(
            f"{path}: uses opset {version}, but {OPSETS[0]} to {OPSETS[-1]} can be imported; "
            f"convert it with onnx.version_converter"
        )
    return versions
