"""Function bodies of operators: those that ONNX defines, and those that the model defines."""

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
    """Return the key under which a model may define a function for a node's operator."""
    return text(node.domain), text(node.op_type), text(node.overload)


def is_same(node: NodeProto, opset: int, other_opset: int) -> bool:
    """Return whether a node's operator has the same version in two opsets."""
    schema, other_schema = schema_of(node, opset), schema_of(node, other_opset)
    return (
        schema is not None
        and other_schema is not None
        and schema.since_version == other_schema.since_version
    )


def allows(node: NodeProto, opset: int, types: Iterable[str | None]) -> bool:
    """Return whether ONNX permits these input types, written as `tensor(float)`, for a node.

    `None` stands for an omitted input.
    """
    schema = schema_of(node, opset)
    if schema is None:
        return False
    constraints = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    bound: dict[str, str] = {}
    for index, type_text in enumerate(types):
        if type_text is None:
            continue
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        if type_text not in constraints.get(formal.type_str, {formal.type_str}):
            return False
        same = formal.is_homogeneous or index < len(schema.inputs) - 1
        if same and bound.setdefault(formal.type_str, type_text) != type_text:
            return False
    return True


def standard_body(node: NodeProto, opset: int, types: Iterable[TypeProto]) -> FunctionProto | None:
    """Return ONNX's function that defines a node's operator for these input types, if any."""
    schema = schema_of(node, opset)
    if schema is None:
        return None
    bodies: Any = schema  # the stubs lack the function bodies
    plain = [version for version in bodies.function_opset_versions if version <= opset]
    if plain:
        return _bind_attributes(bodies.get_function_with_opset_version(max(plain)), node, schema)
    dependent = [v for v in bodies.context_dependent_function_opset_versions if v <= opset]
    if not dependent:
        return None
    encoded = [type_.SerializeToString() for type_ in types]
    try:
        data = bodies.get_context_dependent_function_with_opset_version(
            max(dependent), node.SerializeToString(), encoded
        )
    except (RuntimeError, ValueError):
        # The function depends on attributes or types that the node does not have.
        return None
    return _bind_attributes(data, node, schema)


def expanded_counts(
    bodies: Mapping[Key, Sequence[NodeProto]], callee: Callable[[NodeProto], Key | None], depth: int
) -> dict[Key, int]:
    """Return the number of nodes that each function expands to, nested calls included.

    Calls inside subgraphs are not counted: a branch may not be taken.

    Args:
        bodies: the nodes of each function.
        callee: returns the key of the function that a node calls, or `None`.
        depth: the number of levels of calls that are followed; deeper calls are ignored, since they
            may be recursive.
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
    """Return a copy of a model's function with the attributes of the calling node."""
    defaults = {text(attribute.name): attribute for attribute in function.attribute_proto}
    body = FunctionProto.FromString(function.SerializeToString())
    _bind(body.node, {**defaults, **_attributes(node)})
    return body


def _bind_attributes(data: bytes, node: NodeProto, schema: defs.OpSchema) -> FunctionProto:
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
    """Replace attribute references by their values; delete references without a value."""
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
    """Yield the nodes and, recursively, those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g.node)
            for graph in attribute.graphs:
                yield from all_nodes(graph.node)
