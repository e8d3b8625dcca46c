"""ONNX's own schemas: what an operator takes and makes, and its attributes' defaults.

The schemas come with all of the onnx library, whose import takes longer than most models take to be
read. What most models need of them, the defaults of the standard operators, is in a file here.
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
    stored = _stored_defaults()
    if domain or opset > stored["opset"]:
        newest, own = _schema(domain, operator, _LATEST), _schema(domain, operator, opset)
        return {**_defaults(newest), **_defaults(own)}
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
    """The newest operator set of the file, and by operator and first version its defaults."""
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
