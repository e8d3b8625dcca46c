"""Opaque subgraphs: nodes that stay as the file has them, for devices that run ONNX's own.

Each becomes an extension operation, whose payload is a whole ONNX model: the nodes, the functions
of the model, and the versions of the operator sets that they are written in. Its inputs and outputs
are those of the operation, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from crosschip.importers.onnx.opaque_types import TypeInference
from crosschip.importers.onnx.sequences import check_sequences
from crosschip.importers.onnx.tensors import operand_type, text
from crosschip.ir import (
    Array,
    Dim,
    ElementType,
    Extension,
    Operand,
    Shape,
    TensorType,
    UnsupportedError,
    unknown,
)
from crosschip.ir.dimension import is_unknown
from crosschip.onnx_messages import (
    CODES,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
    operator_sets,
    tensor_type,
)

_FIRST_WITH_CONSTANTS = 4
"""The version of the file format from which on initializers need not be inputs, too."""

_ANYTHING = tensor_type(TensorProto.FLOAT, [])
"""The checker wants every output to have a type, but does not ask whether it is the right one."""


class Names(Protocol):
    """The meanings of names of a graph."""

    def optional(self, name: str) -> Operand | None:
        """The operand of a name."""

    def array(self, tensor: TensorProto) -> Array:
        """The elements of a tensor of the file."""

    def strings(self, operand: Operand) -> TensorProto | None:
        """The tensor of strings of the file that an operand stands for, if it does."""

    def type_of(self, operand: Operand) -> TypeProto:
        """The type of an operand as ONNX writes it."""

    def contain(self, operand: Operand, type_: TypeProto) -> None:
        """Keep the type of an operand that is no tensor."""


class OpaqueSubgraph:
    """Nodes that stay together as the file has them, not translated.

    Args:
        nodes: in an order in which they can run.
        outputs: the names of what they make for others.
        names: what the names that they read stand for.
        opsets: the versions of the operator sets that they are written in.
        ir_version: that of the file.
        functions: those of the model.
        declared: the types that the file declares for names.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProto],
        outputs: Sequence[str],
        names: Names,
        opsets: Mapping[str, int],
        ir_version: int,
        functions: Iterable[FunctionProto],
        declared: Mapping[str, TypeProto],
    ) -> None:
        self._nodes = nodes
        self._outputs = outputs
        self._names = names
        self._opsets = opsets
        self._ir_version = ir_version
        self._functions = functions
        self._declared = declared
        read = {name: names.optional(name) for name in free_names(nodes)}
        present = {name: operand for name, operand in read.items() if operand is not None}
        strings = {name: names.strings(operand) for name, operand in present.items()}
        self._strings = {name: tensor for name, tensor in strings.items() if tensor is not None}
        self._inputs = {name: o for name, o in present.items() if name not in self._strings}

    def is_sound(self) -> bool:
        """Tell whether the nodes break no rule of ONNX that shows without running them."""
        model = self._model(dict.fromkeys(self._outputs, _ANYTHING))
        for value in model.graph.input:
            if value.type.HasField("tensor_type"):
                # The checker wants a shape everywhere, but does not look at it.
                value.type.tensor_type.shape.SetInParent()
        from onnx import checker  # seldom needed

        try:
            checker.check_model(model)
        except (checker.ValidationError, ValueError):
            return False
        return True

    def extension(self, name: str, reason: str) -> Extension:
        """The operation that the nodes stay as.

        Args:
            name: what messages call it.
            reason: why no standard operators express it.

        Raises:
            UnsupportedError: they break a rule of ONNX, or it is not known what they make.
            ModelError: they put into a sequence, or join, what does not go together.
        """
        if not self.is_sound():
            raise UnsupportedError("ONNX itself refuses it")
        types = {n: self._names.type_of(operand) for n, operand in self._inputs.items()}
        types.update((n, _string_type(tensor)) for n, tensor in self._strings.items())
        inference = TypeInference(self._opsets, self._functions)
        inference.extend(types, self._nodes, self._declared)
        check_sequences(self._nodes, types, self._inputs.get)
        declared = tuple(self._output_type(output, types) for output in self._outputs)
        outputs = tuple(map(Operand, self._outputs, declared))
        for operand in outputs:
            if operand.type.element_type is ElementType.OBJECT:
                self._names.contain(operand, types[operand.name])
        return Extension(
            name,
            tuple(self._inputs.values()),
            outputs,
            type=f"onnx.{'+'.join(dict.fromkeys(map(_title, self._nodes)))}",
            payload=self._model(types).SerializeToString(),
            declared=declared,
            reason=reason,
        )

    def _output_type(self, name: str, types: Mapping[str, TypeProto]) -> TensorType:
        if name not in types:
            raise UnsupportedError(f"the type of {name!r} is not known")
        if is_container(types[name]):
            return CONTAINER
        tensor = types[name].tensor_type
        shape = self._shape(tensor.shape) if tensor.HasField("shape") else None
        return TensorType(operand_type(tensor.elem_type), shape)

    def _shape(self, proto: TensorShapeProto) -> Shape:
        """A shape that the file declares; names count as far as they are those of inputs' sizes."""
        known = {
            str(size): size
            for operand in self._inputs.values()
            for size in operand.type.shape or ()
        }
        return tuple(
            size.dim_value if size.HasField("dim_value") else known.get(size.dim_param, unknown())
            for size in proto.dim
        )

    def _model(self, types: Mapping[str, TypeProto]) -> ModelProto:
        """The nodes as a model of their own, with the types of its outputs."""
        graph = GraphProto(name="extension")
        for node in self._nodes:
            self._embed(graph.node.add(), node)
        for name, operand in self._inputs.items():
            graph.input.append(ValueInfoProto(name=name, type=self._names.type_of(operand)))
        for name, tensor in self._strings.items():
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
        for name in self._outputs:
            graph.output.append(ValueInfoProto(name=name, type=types[name]))
        return ModelProto(
            ir_version=max(_FIRST_WITH_CONSTANTS, self._ir_version),
            graph=graph,
            functions=self._functions,
            opset_import=operator_sets(self._opsets),
        )

    def _embed(self, target: NodeProto, node: NodeProto) -> None:
        """Copy a node, with all tensors that it holds in it instead of in another file."""
        from onnx import numpy_helper  # seldom needed

        target.CopyFrom(node)
        for tensor in _tensors([target]):
            if tensor.data_location == TensorProto.EXTERNAL:
                tensor.CopyFrom(
                    numpy_helper.from_array(self._names.array(tensor), text(tensor.name))
                )


CONTAINER = TensorType(ElementType.OBJECT, ())
"""The type of an operand that is no tensor."""


def is_container(type_: TypeProto) -> bool:
    """Tell whether values of a type are sequences, maps or optional values."""
    return type_.WhichOneof("value") in ("map_type", "optional_type", "sequence_type")


def type_text(operand: Operand) -> str:
    """The type of an operand as ONNX's schemas write it; those of containers are not told."""
    if operand.type == CONTAINER:
        return "container"
    name = TensorProto.DataType.Name(CODES[operand.type.element_type])
    return f"tensor({name.lower()})"


def type_proto(type_: TensorType) -> TypeProto:
    """A type as ONNX writes it."""
    shape = None if type_.shape is None else [_size(size) for size in type_.shape]
    return tensor_type(CODES[type_.element_type], shape)


def _string_type(tensor: TensorProto) -> TypeProto:
    return tensor_type(TensorProto.STRING, tensor.dims)


def _size(size: Dim) -> int | str | None:
    if isinstance(size, int):
        return size
    return None if is_unknown(size) else str(size)


def free_names(nodes: Iterable[NodeProto]) -> dict[str, None]:
    """The names that nodes, and the graphs that they hold, read from outside, in order."""
    defined: set[str] = set()
    free: dict[str, None] = {}
    for node in nodes:
        read = [text(name) for name in node.input]
        for graph in _graphs(node):
            own = {text(value.name) for value in graph.input}
            own.update(text(tensor.name) for tensor in graph.initializer)
            inside = [*free_names(graph.node), *(text(value.name) for value in graph.output)]
            local = own.union(text(name) for inner in graph.node for name in inner.output)
            read += [name for name in inside if name not in local]
        free.update((name, None) for name in read if name and name not in defined)
        defined.update(map(text, node.output))
    return free


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _tensors(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    """All tensors that nodes, and the graphs that they hold, bring with them."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for graph in _graphs(node):
            yield from graph.initializer
            yield from _tensors(graph.node)


def _title(node: NodeProto) -> str:
    domain = text(node.domain)
    return f"{domain}.{text(node.op_type)}" if domain else text(node.op_type)
