"""Opaque subgraphs: nodes kept as ONNX, for devices that execute ONNX operators.

Each becomes an extension operation, whose payload is a whole ONNX model: the nodes, the functions
of the model, and the opset versions. The payload's inputs and outputs are the operation's, in
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from crosschip.importers.onnx.opaque_types import TypeInference
from crosschip.importers.onnx.schemas import STANDARD_DOMAINS
from crosschip.importers.onnx.tensors import element_type_or_string, text
from crosschip.ir import (
    Builder,
    Dim,
    ElementType,
    Extension,
    ModelError,
    Operand,
    Shape,
    TensorType,
    UnsupportedError,
    unknown,
)
from crosschip.ir.dimension import is_unknown
from crosschip.onnx_messages import (
    CODES,
    OPERAND_TYPES,
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
from crosschip.ops.standard.joining import Concat, Stack

if TYPE_CHECKING:
    from crosschip.importers.onnx.names import Names

_FIRST_WITH_CONSTANTS = 4
"""The first version of the file format in which initializers need not be graph inputs."""

_ANYTHING = tensor_type(TensorProto.FLOAT, [])
"""A placeholder: the checker needs a type for each output but does not compare it."""


class OpaqueSubgraph:
    """Nodes that are kept together as ONNX.

    Args:
        nodes: the nodes, in topological order.
        outputs: the names of the outputs that other nodes read.
        names: resolves the names that the nodes read.
        opsets: the opset version per domain.
        ir_version: the version of the file format.
        functions: the functions of the model.
        declared: the declared types by name.
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
        """Return whether ONNX's checker accepts the nodes."""
        model = self._model(dict.fromkeys(self._outputs, _ANYTHING))
        for value in model.graph.input:
            if value.type.HasField("tensor_type"):
                # The checker needs the field to be present, but does not read it.
                value.type.tensor_type.shape.SetInParent()
        from onnx import checker  # seldom needed

        try:
            checker.check_model(model)
        except (checker.ValidationError, ValueError):
            return False
        return True

    def extension(self, name: str, reason: str) -> Extension:
        """Return the extension operation for the nodes.

        Args:
            name: the name of the operation.
            reason: why standard operators cannot express the nodes.

        Raises:
            UnsupportedError: the nodes break a rule of ONNX, or an output type is unknown.
            ModelError: incompatible values are put into a sequence or joined.
        """
        if not self.is_sound():
            raise UnsupportedError("ONNX itself refuses it")
        types = {n: self._names.type_of(operand) for n, operand in self._inputs.items()}
        strings = self._strings.items()
        types.update((n, tensor_type(TensorProto.STRING, tensor.dims)) for n, tensor in strings)
        inference = TypeInference(self._opsets, self._functions)
        inference.extend(types, self._nodes, self._declared)
        _check_sequences(self._nodes, types, self._inputs.get)
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
        return TensorType(element_type_or_string(tensor.elem_type), shape)

    def _shape(self, proto: TensorShapeProto) -> Shape:
        """Return a declared shape; names count only where an input has a dimension of that name."""
        dimensions = {
            str(size): size
            for operand in self._inputs.values()
            for size in operand.type.shape or ()
        }
        return tuple(
            size.dim_value
            if size.HasField("dim_value")
            else dimensions.get(size.dim_param, unknown())
            for size in proto.dim
        )

    def _model(self, types: Mapping[str, TypeProto]) -> ModelProto:
        """Build an ONNX model of the nodes, with `types` for its outputs."""
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
        """Copy a node, with external tensors stored inline."""
        from onnx import numpy_helper  # seldom needed

        target.CopyFrom(node)
        for tensor in _tensors([target]):
            if tensor.data_location == TensorProto.EXTERNAL:
                tensor.CopyFrom(
                    numpy_helper.from_array(self._names.array(tensor), text(tensor.name))
                )


CONTAINER = TensorType(ElementType.OBJECT, ())
"""The type of an operand that is a sequence, map or optional value."""


def is_container(type_: TypeProto) -> bool:
    """Return whether a type is a sequence, map or optional type."""
    return type_.WhichOneof("value") in ("map_type", "optional_type", "sequence_type")


def type_text(operand: Operand) -> str:
    """Return an operand's type as ONNX's schemas write it; `"container"` for all containers."""
    if operand.type == CONTAINER:
        return "container"
    name = TensorProto.DataType.Name(CODES[operand.type.element_type])
    return f"tensor({name.lower()})"


def type_proto(type_: TensorType) -> TypeProto:
    """Return a type as an ONNX `TypeProto`."""
    shape = None if type_.shape is None else [_size(size) for size in type_.shape]
    return tensor_type(CODES[type_.element_type], shape)


def _size(size: Dim) -> int | str | None:
    if isinstance(size, int):
        return size
    return None if is_unknown(size) else str(size)


def free_names(nodes: Iterable[NodeProto]) -> dict[str, None]:
    """Return the names that nodes, subgraphs included, read from outside, in order."""
    defined: set[str] = set()
    free: dict[str, None] = {}
    for node in nodes:
        read = [text(name) for name in node.input]
        for graph in _graphs(node):
            local = {text(value.name) for value in graph.input}
            local.update(text(tensor.name) for tensor in graph.initializer)
            local.update(text(name) for inner in graph.node for name in inner.output)
            used = [*free_names(graph.node), *(text(value.name) for value in graph.output)]
            read += [name for name in used if name not in local]
        free.update((name, None) for name in read if name and name not in defined)
        defined.update(map(text, node.output))
    return free


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _tensors(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    """Yield all tensors in the attributes of nodes and their subgraphs."""
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


def _check_sequences(
    nodes: Sequence[NodeProto],
    types: Mapping[str, TypeProto],
    operand_of: Callable[[str], Operand | None],
) -> None:
    """Check, beyond ONNX's checker, element types of sequences and shapes of tensors to join.

    Shapes are checked only for tensors that enter the subgraph from outside.

    Args:
        nodes: the nodes, in topological order.
        types: the known types by name.
        operand_of: returns the operand of a name from outside.

    Raises:
        ModelError: a check fails; the message names the node.
    """
    contents: dict[str, list[Operand]] = {}
    for node in nodes:
        if node.domain not in STANDARD_DOMAINS:
            continue
        read = [text(name) for name in node.input]
        if node.op_type == "SequenceInsert":
            _check_types(node, [types.get(name) for name in read[:2]])
        if node.op_type == "SequenceConstruct":
            _check_types(node, [types.get(name) for name in read])
            contents[text(node.output[0])] = _external_operands(read, operand_of)
        elif node.op_type == "SequenceInsert" and read[0] in contents:
            contents[text(node.output[0])] = [
                *contents[read[0]],
                *_external_operands(read[1:2], operand_of),
            ]
        elif node.op_type == "SequenceEmpty":
            contents[text(node.output[0])] = []
        elif node.op_type == "ConcatFromSequence":
            _check_joined(node, contents.get(read[0], []))


def _external_operands(
    names: Sequence[str], operand_of: Callable[[str], Operand | None]
) -> list[Operand]:
    operands = map(operand_of, names)
    return [operand for operand in operands if operand is not None]


def _check_types(node: NodeProto, types: Sequence[TypeProto | None]) -> None:
    """Check that the elements of a sequence have one type."""
    codes = dict.fromkeys(
        type_.tensor_type.elem_type for type_ in map(_tensor_type, types) if type_ is not None
    )
    type_names = [str(OPERAND_TYPES[code]) for code in codes if code in OPERAND_TYPES]
    if len(type_names) > 1:
        where = f"{text(node.op_type)} {text(node.name)!r}"
        raise ModelError(
            f"{where}: a sequence holds one element type, not {' and '.join(type_names)}"
        )


def _tensor_type(type_: TypeProto | None) -> TypeProto | None:
    """Return the tensor type, or that of a sequence's elements; `None` for other types."""
    if type_ is not None and type_.HasField("sequence_type"):
        type_ = type_.sequence_type.elem_type
    return type_ if type_ is not None and type_.HasField("tensor_type") else None


def _check_joined(node: NodeProto, parts: Sequence[Operand]) -> None:
    """Check that tensors can be concatenated or stacked."""
    if len(parts) < 2:
        return
    numbers = {attribute.name: attribute.i for attribute in node.attribute}
    operator = Stack if numbers.get("new_axis") else Concat
    name = text(node.name) or text(node.op_type)
    Builder().add(operator, parts, numbers.get("axis", 0), name=name)
