"""ONNX's own schemas: what an operator takes and makes, and its attributes' defaults."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from onnx import AttributeProto, NodeProto, defs

from crosschip.importers.onnx.tensors import text

STANDARD_DOMAINS = ("", "ai.onnx")
_LATEST = 2**31 - 1


def domain_of(node: NodeProto) -> str:
    """The domain of a node's operator; empty if that is the standard one."""
    return "" if node.domain in STANDARD_DOMAINS else text(node.domain)


def schema_of(node: NodeProto, opset: int) -> defs.OpSchema | None:
    """The schema of a node's operator, if it is one of ONNX's."""
    return _schema(domain_of(node), text(node.op_type), opset)


@cache
def defaults(domain: str, operator: str, opset: int) -> Mapping[str, AttributeProto]:
    """The defaults of an operator's attributes, by name, in a version of the operator set.

    An attribute that this version does not have yet has that of the newest version: ONNX adds
    attributes so that leaving them out changes nothing.
    """
    newest, own = _schema(domain, operator, _LATEST), _schema(domain, operator, opset)
    return {**_defaults(newest), **_defaults(own)}


def _schema(domain: str, operator: str, opset: int) -> defs.OpSchema | None:
    try:
        return defs.get_schema(operator, min(opset, _LATEST), domain)
    except defs.SchemaError:
        return None


def _defaults(schema: defs.OpSchema | None) -> dict[str, AttributeProto]:
    attributes = schema.attributes.items() if schema else ()
    return {name: a.default_value for name, a in attributes if a.default_value.type}
