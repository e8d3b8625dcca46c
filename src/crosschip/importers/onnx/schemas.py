"""ONNX's operator schemas, and the attribute defaults that they define.

Importing the onnx library takes longer than reading most models. The defaults of the standard
operators, which most models need, are therefore stored in a file of this package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosschip.importers.onnx.tensors import text
from crosschip.onnx_messages import AttributeProto, NodeProto, make_attribute

if TYPE_CHECKING:
    from onnx import defs

STANDARD_DOMAINS = ("", "ai.onnx")
_LATEST = 2**31 - 1

_DEFAULTS = Path(__file__).with_name("defaults.json")
"""Written by `scripts/write_onnx_defaults.py`: operators without defaults are not in it."""


def domain_of(node: NodeProto) -> str:
    """Return the domain of a node's operator; empty for the standard one."""
    return "" if node.domain in STANDARD_DOMAINS else text(node.domain)


def schema_of(node: NodeProto, opset: int) -> defs.OpSchema | None:
    """Return ONNX's schema for a node's operator; `None` if there is none."""
    return _schema(domain_of(node), text(node.op_type), opset)


@cache
def defaults(domain: str, operator: str, opset: int) -> Mapping[str, AttributeProto]:
    """Return an operator's attribute defaults by name.

    An attribute that this version lacks has the default of the newest version: ONNX adds attributes
    only with defaults that preserve behaviour.
    """
    stored = _stored_defaults()
    if domain or opset > stored["opset"]:
        newest, current_schema = (
            _schema(domain, operator, _LATEST),
            _schema(domain, operator, opset),
        )
        return {**_defaults(newest), **_defaults(current_schema)}
    versions = {
        int(since): current_values
        for since, current_values in stored["operators"].get(operator, {}).items()
    }
    last = max(versions, default=0)
    current = max((since for since in versions if since <= opset), default=last)
    current_values = {**versions.get(last, {}), **versions.get(current, {})}
    return {name: make_attribute(name, value) for name, value in current_values.items()}


@cache
def _stored_defaults() -> dict[str, Any]:
    """Read the file: its newest opset, and the defaults per operator and first version."""
    stored: dict[str, Any] = json.loads(_DEFAULTS.read_text("utf-8"))
    return stored


def _schema(domain: str, operator: str, opset: int) -> defs.OpSchema | None:
    from onnx import defs

    try:
        return defs.get_schema(operator, min(opset, _LATEST), domain)
    except defs.SchemaError:
        return None


def _defaults(schema: defs.OpSchema | None) -> dict[str, AttributeProto]:
    attributes = schema.attributes.items() if schema else ()
    return {name: a.default_value for name, a in attributes if a.default_value.type}
