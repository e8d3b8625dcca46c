"""Embedding of extension operations, stored as ONNX models, in one graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import CompileError
from crosschip.ir import ElementType, Extension, Model, Operand
from crosschip.ir.types import NARROW_INTEGERS
from crosschip.onnx_messages import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

PACKED = NARROW_INTEGERS | {ElementType.FLOAT4E2M1}
"""The element types that ONNX packs into bytes."""

Payloads = Mapping[Extension, ModelProto]


def payloads_of(model: Model) -> Payloads:
    """Return the ONNX models that the extension operations of a model are stored as."""
    return {
        operation: ModelProto.FromString(operation.payload)
        for operation in model.operations
        if isinstance(operation, Extension)
    }


def types_in(payloads: Payloads) -> dict[Operand, TypeProto]:
    """Return the ONNX types of the operands of extension operations."""
    types: dict[Operand, TypeProto] = {}
    for operation, payload in payloads.items():
        pairs = [
            *zip(operation.inputs, payload.graph.input, strict=True),
            *zip(operation.outputs, payload.graph.output, strict=True),
        ]
        types.update((operand, value.type) for operand, value in pairs if operand is not None)
    return types


def embed(graph: Graph, operation: Extension, payload: ModelProto) -> Sequence[str]:
    """Add the nodes of an extension operation to a graph, and return the names of its outputs.

    Raises:
        CompileError: the graph has another function of the same name, or another version of a
            domain's operators.
    """
    source = payload.graph
    prefix = graph.new_prefix()
    names: dict[str, str] = {}
    for operand, value in zip(operation.inputs, source.input, strict=True):
        assert operand is not None, "an extension lists the inputs that it has"
        if operand.value is not None and operand.type.element_type in PACKED:
            from onnx import numpy_helper  # imported late: rarely needed

            tensor = numpy_helper.from_array(operand.value, f"{prefix}{value.name}")
            graph.add_initializer(tensor)
        else:
            names[value.name] = graph[operand]
    rename = _Renaming(names, prefix)
    for tensor in source.initializer:
        tensor.name = rename(tensor.name)
        graph.add_initializer(tensor)
    for node in source.node:
        rename.node(node)
        graph.add_node(node)
    for entry in payload.opset_import:
        version = graph.require(entry.domain, entry.version)
        if version != entry.version:
            raise CompileError(
                f"onnxruntime: {operation.type} {operation.name!r} is of version {entry.version} "
                f"of {entry.domain!r}, where version {version} is in use",
                [operation],
            )
    for function in payload.functions:
        if graph.add_function(function) != function:
            raise CompileError(
                f"onnxruntime: {operation.type} {operation.name!r} calls another function "
                f"{function.name!r} than the operations before it",
                [operation],
            )
    return [rename(value.name) for value in source.output]


def survives_writing(payload: ModelProto) -> bool:
    """Return whether ONNX Runtime can read what it writes of a model after optimization.

    It cannot with subgraphs or string constants.
    """
    values = [*payload.graph.input, *payload.graph.output]
    kinds = {value.type.tensor_type.elem_type for value in values}
    kinds.update(tensor.data_type for tensor in payload.graph.initializer)
    attributes = [a for node in all_nodes(payload) for a in node.attribute]
    kinds.update(a.i for a in attributes if a.name == "to")
    kinds.update(a.t.data_type for a in attributes)
    return TensorProto.STRING not in kinds and not any(
        a.HasField("g") or a.graphs or a.name.startswith("value_string") for a in attributes
    )


def is_precise(payload: ModelProto) -> bool:
    """Return whether ONNX Runtime can compute a model's products of bytes without saturation.

    To avoid saturation, ONNX Runtime converts the weights to uint8; it has no kernel for `QGemm` of
    int8 and uint8.
    """
    return not any(node.op_type == "QGemm" for node in all_nodes(payload))


def all_nodes(proto: ModelProto) -> Iterator[NodeProto]:
    """Yield all nodes of a model, including those of functions and subgraphs."""
    yield from with_inner(proto.graph.node)
    for function in proto.functions:
        yield from with_inner(function.node)


def with_inner(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes and the nodes of their subgraphs."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            pending.extend(attribute.g.node)
            for graph in attribute.graphs:
                pending.extend(graph.node)


class _Renaming:
    """New names for the values of a graph and its subgraphs.

    Args:
        known: the names of the graph's inputs.
        prefix: the prefix of all other names.
    """

    def __init__(self, known: Mapping[str, str], prefix: str) -> None:
        self._known = known
        self._prefix = prefix

    def __call__(self, name: str) -> str:
        return self._known.get(name, f"{self._prefix}{name}") if name else ""

    def node(self, node: NodeProto) -> None:
        """Rename the inputs and outputs of a node."""
        node.input[:] = map(self, node.input)
        node.output[:] = map(self, node.output)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                self._graph(attribute.g)
            for graph in attribute.graphs:
                self._graph(graph)

    def _graph(self, graph: GraphProto) -> None:
        for value in (*graph.input, *graph.output, *graph.value_info):
            value.name = self(value.name)
        for tensor in (*graph.initializer, *(s.values for s in graph.sparse_initializer)):
            tensor.name = self(tensor.name)
        for node in graph.node:
            self.node(node)
