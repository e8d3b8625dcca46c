"""Operators that are functions of others: those that ONNX defines so, and those of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosschip.importers.onnx.schemas import schema_of
from crosschip.importers.onnx.tensors import text
from crosschip.onnx_messages import AttributeProto, FunctionProto, NodeProto, TypeProto

if TYPE_CHECKING:
    from onnx import defs


Key = tuple[str, str, str]
"""The domain, name and overload of a function."""


def key_of(node: NodeProto) -> Key:
    """The key of the function that a node calls, if there is one."""
    return text(node.domain), text(node.op_type), text(node.overload)


def is_same(node: NodeProto, opset: int, other: int) -> bool:
    """Tell whether two versions of the operator set mean the same by a node."""
    schema, other_schema = schema_of(node, opset), schema_of(node, other)
    return (
        schema is not None
        and other_schema is not None
        and schema.since_version == other_schema.since_version
    )


def allows(node: NodeProto, opset: int, types: Iterable[str | None]) -> bool:
    """Tell whether ONNX lets a node read operands of these types, written as `tensor(float)`.

    `None` stands for an input that is left out.
    """
    schema = schema_of(node, opset)
    if schema is None:
        return False
    constraints = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    bound: dict[str, str] = {}
    for index, written in enumerate(types):
        if written is None:
            continue
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        if written not in constraints.get(formal.type_str, {formal.type_str}):
            return False
        same = formal.is_homogeneous or index < len(schema.inputs) - 1
        if same and bound.setdefault(formal.type_str, written) != written:
            return False
    return True


def standard_body(node: NodeProto, opset: int, types: Iterable[TypeProto]) -> FunctionProto | None:
    """The function that ONNX defines a node's operator as, for inputs of these types."""
    schema = schema_of(node, opset)
    if schema is None:
        return None
    bodies: Any = schema  # the stubs leave out what follows
    plain = [version for version in bodies.function_opset_versions if version <= opset]
    if plain:
        return _bound(bodies.get_function_with_opset_version(max(plain)), node, schema)
    known = [v for v in bodies.context_dependent_function_opset_versions if v <= opset]
    if not known:
        return None
    encoded = [type_.SerializeToString() for type_ in types]
    try:
        data = bodies.get_context_dependent_function_with_opset_version(
            max(known), node.SerializeToString(), encoded
        )
    except (RuntimeError, ValueError):
        # The function depends on attributes or types that the node does not have.
        return None
    return _bound(data, node, schema)


def expanded_counts(
    bodies: Mapping[Key, Sequence[NodeProto]], callee: Callable[[NodeProto], Key | None], depth: int
) -> dict[Key, int]:
    """The number of nodes that each function of a model becomes, with the functions that it calls.

    What graphs in nodes call is not counted, since a branch may not be taken.

    Args:
        bodies: the nodes of each function.
        callee: the function that a node calls, if it does.
        depth: how many functions deep calls are followed; beyond it there may be a cycle.
    """
    calls = {key: Counter(filter(None, map(callee, nodes))) for key, nodes in bodies.items()}
    counts = {key: len(nodes) for key, nodes in bodies.items()}
    for _ in range(depth):
        deeper = {
            key: len(nodes) + sum(times * counts[called] for called, times in calls[key].items())
            for key, nodes in bodies.items()
        }
        if deeper == counts:
            break
        counts = deeper
    return counts


def model_body(function: FunctionProto, node: NodeProto) -> FunctionProto:
    """A function of the model, with the attributes of a node that calls it."""
    defaults = {text(attribute.name): attribute for attribute in function.attribute_proto}
    body = FunctionProto.FromString(function.SerializeToString())
    _bind(body.node, {**defaults, **_attributes(node)})
    return body


def _bound(data: bytes, node: NodeProto, schema: defs.OpSchema) -> FunctionProto:
    body = FunctionProto.FromString(data)
    defaults = {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != AttributeProto.UNDEFINED
    }
    _bind(body.node, {**defaults, **_attributes(node)})
    return body


def _attributes(node: NodeProto) -> dict[str, AttributeProto]:
    return {text(attribute.name): attribute for attribute in node.attribute}


def _bind(nodes: Iterable[NodeProto], values: Mapping[str, AttributeProto]) -> None:
    """Put the attributes that are given where the nodes refer to them; drop what is not given."""
    for node in all_nodes(nodes):
        for index in reversed(range(len(node.attribute))):
            attribute = node.attribute[index]
            if not attribute.ref_attr_name:
                continue
            source = values.get(text(attribute.ref_attr_name))
            if source is None:
                del node.attribute[index]
            else:
                name = text(attribute.name)
                attribute.CopyFrom(source)
                attribute.name = name


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes and those of the graphs that they hold."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g.node)
            for graph in attribute.graphs:
                yield from all_nodes(graph.node)
