"""What a session says of its model: inputs, outputs and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.apis.onnxruntime.types import tensor_name, type_name
from crosschip.importers.onnx.wire import without_weights
from crosschip.ir import Operand
from crosschip.ir.files import DataFile, Held
from crosschip.onnx_messages import (
    GraphProto,
    ModelProto,
    TensorProto,
    TensorShapeProto,
    ValueInfoProto,
)

Size = int | str | None


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a model.

    Attributes:
        name: the name.
        type: the name of its type, such as `tensor(float)`.
        shape: the sizes: a number, the name of a dynamic dimension, or `None`.
    """

    name: str
    type: str
    shape: list[Size]

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __repr__ = __str__


@dataclass
class ModelMetadata:
    """The metadata of a model's file; empty for formats other than ONNX."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 2**63 - 1
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """The description of a model.

    Attributes:
        inputs: the inputs.
        outputs: the outputs.
        initializers: the inputs with a default, an initializer.
        metadata: the metadata.
        denotations: the input and axis of each dimension with a denotation, by denotation.
        is_onnx: whether the model comes from an ONNX file.
    """

    inputs: list[NodeArg]
    outputs: list[NodeArg]
    initializers: list[NodeArg]
    metadata: ModelMetadata
    denotations: Mapping[str, list[tuple[str, int]]]
    is_onnx: bool = True

    def sizes_differ(self, values: Mapping[str, Any]) -> bool:
        """Return whether inputs fit the model but for sizes of one name that differ."""
        sizes: dict[str, int] = {}
        differ = False
        for arg in self.inputs:
            shape = np.shape(values[arg.name])
            if len(shape) != len(arg.shape):
                return False
            for size, number in zip(arg.shape, shape, strict=True):
                if isinstance(size, int) and size != number:
                    return False
                if isinstance(size, str):
                    differ |= sizes.setdefault(size, number) != number
        return differ

    def with_sizes(
        self, by_name: Mapping[str, int], by_denotation: Mapping[str, int]
    ) -> Description:
        """Return the description with sizes for dynamic dimensions, by name and by denotation."""
        if not (by_name or by_denotation):
            return self
        fixed = dict(by_name)
        positions = {
            p: by_denotation[d]
            for d, ps in self.denotations.items()
            for p in ps
            if d in by_denotation
        }

        def with_size(arg: NodeArg) -> NodeArg:
            sizes = [
                size
                if isinstance(size, int)
                else positions.get((arg.name, axis), fixed.get(size or "", size))
                for axis, size in enumerate(arg.shape)
            ]
            return replace(arg, shape=sizes)

        for arg in self.inputs:
            for axis, size in enumerate(arg.shape):
                if isinstance(size, str) and (arg.name, axis) in positions:
                    fixed[size] = positions[arg.name, axis]
        return replace(
            self, inputs=[*map(with_size, self.inputs)], outputs=[*map(with_size, self.outputs)]
        )


def describe(source: Path | bytes) -> Description | None:
    """Return the description of an ONNX model, whose weights are not read; else `None`.

    Raises:
        OSError: the file cannot be read.
    """
    from google.protobuf.message import DecodeError  # imported late, as protobuf is

    if isinstance(source, Path) and (source.is_dir() or source.suffix.lower() != ".onnx"):
        return None
    content = Held(source) if isinstance(source, bytes) else DataFile(source)
    try:
        proto = ModelProto.FromString(without_weights(content))
    except DecodeError:
        return None
    if not proto.graph.output:
        return None
    graph = proto.graph
    defaults = {tensor.name for tensor in graph.initializer}
    defaults |= {tensor.values.name for tensor in graph.sparse_initializer}
    return Description(
        [_node_arg(value) for value in graph.input if value.name not in defaults],
        [_node_arg(value) for value in graph.output],
        [_node_arg(v) for v in graph.input if v.name in defaults] if proto.ir_version >= 4 else [],
        _metadata(proto),
        _denotations(graph),
    )


def describe_operands(inputs: Mapping[str, Operand], outputs: Mapping[str, Operand]) -> Description:
    """Return the description of a model of another format."""

    def node_args(operands: Mapping[str, Operand]) -> list[NodeArg]:
        return [
            NodeArg(
                name,
                tensor_name(o.type),
                [size if isinstance(size, int) else str(size) for size in o.type.shape or ()],
            )
            for name, o in operands.items()
        ]

    return Description(
        node_args(inputs), node_args(outputs), [], ModelMetadata(), {}, is_onnx=False
    )


def _node_arg(value: ValueInfoProto) -> NodeArg:
    tensor = value.type.tensor_type
    return NodeArg(value.name, type_name(value.type), [_size(d) for d in tensor.shape.dim])


def _size(dim: TensorShapeProto.Dimension) -> Size:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return dim.dim_param or None


def _metadata(proto: ModelProto) -> ModelMetadata:
    return ModelMetadata(
        producer_name=proto.producer_name,
        graph_name=proto.graph.name,
        domain=proto.domain,
        description=proto.doc_string,
        graph_description=proto.graph.doc_string,
        version=proto.model_version if proto.HasField("model_version") else 2**63 - 1,
        custom_metadata_map={entry.key: entry.value for entry in proto.metadata_props},
    )


def _denotations(graph: GraphProto) -> dict[str, list[tuple[str, int]]]:
    axes: dict[str, list[tuple[str, int]]] = {}
    for value in graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.denotation:
                axes.setdefault(dim.denotation, []).append((value.name, axis))
    return axes


def replaced_initializers(source: Path | bytes, values: Mapping[str, Any]) -> bytes:
    """Return an ONNX model with other values for initializers; `None` makes one an input.

    Raises:
        KeyError: there is no such initializer.
    """
    from onnx import numpy_helper

    model = _load(source)
    position = {tensor.name: i for i, tensor in enumerate(model.graph.initializer)}
    removed = []
    for name, value in values.items():
        tensor: TensorProto = model.graph.initializer[position[name]]
        if value is None:
            removed.append(position[name])
        else:
            tensor.CopyFrom(numpy_helper.from_array(value, name))
    for index in sorted(removed, reverse=True):
        del model.graph.initializer[index]
    return _serialize(model, source)


def with_independent_sizes(source: Path | bytes) -> bytes:
    """Return an ONNX model without the names of the sizes of inputs, outputs and values."""
    model = _load(source)
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.ClearField("dim_param")
    del model.graph.value_info[:]
    return _serialize(model, source)


def _load(source: Path | bytes) -> ModelProto:
    import onnx

    content = source.read_bytes() if isinstance(source, Path) else source
    return onnx.load_from_string(content)


def _serialize(model: ModelProto, source: Path | bytes) -> bytes:
    """Return the content of a changed model, with the external data next to its file."""
    from onnx import external_data_helper

    if isinstance(source, Path):
        external_data_helper.load_external_data_for_model(model, str(source.parent))
    content: bytes = model.SerializeToString()
    return content
