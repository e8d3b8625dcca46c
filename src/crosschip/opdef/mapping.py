"""Conversion between XML elements and nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar
from xml.sax.saxutils import escape, quoteattr

from crosschip.opdef.definitions import Node, Xml, layout_of, values
from crosschip.opdef.tree import Element

N = TypeVar("N", bound=Node)

INDENT = "    "
_SPACE = re.compile("[ \t\r\n]+")
_IN_TEXT = {"\r": "&#13;"}
_IN_ATTRIBUTES = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def read_node(cls: type[N], element: Element) -> N:
    """Convert an element of a valid tree to a node."""
    fields: dict[str, Any] = {"location": element.location}
    by_tag: dict[str, list[Element]] = {}
    for part in element.parts:
        by_tag.setdefault(part.tag, []).append(part)
    for name, xml in layout_of(cls).items():
        read = list(_values_in(element, xml, by_tag))
        if xml.many:
            fields[name] = tuple(read)
        elif read:
            fields[name] = read[0]
    return cls(**fields)


def _values_in(element: Element, xml: Xml, parts: Mapping[str, list[Element]]) -> Iterator[Any]:
    if xml.attribute:
        attribute = element.get(xml.attribute)
        if attribute is not None:
            yield _plain_value(xml.kinds[""], attribute, xml.exact)
    elif "" in xml.kinds:
        yield element.text or ""
    elif len(xml.kinds) == 1:
        (tag,) = xml.kinds
        yield from (read_value(xml, part) for part in parts.get(tag, ()))
    else:
        yield from (read_value(xml, part) for part in element.parts if part.tag in xml.kinds)


def read_value(xml: Xml, element: Element) -> Any:
    """Convert an element of a valid tree to a field's value."""
    kind = xml.kinds[element.tag]
    if issubclass(kind, Node):
        return read_node(kind, element)
    return _plain_value(kind, element.text or "", xml.exact)


def _plain_value(kind: type[Any], text: str, exact: bool) -> Any:
    if exact:
        return text
    word = _SPACE.sub(" ", text).strip(" ")
    return word in ("true", "1") if kind is bool else kind(word)


def plain_text(value: object) -> str:
    """Return the text of a value that is no node."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.value if isinstance(value, Enum) else value)


def attribute_text(text: str) -> str:
    """Return an attribute value quoted and escaped."""
    return quoteattr(text, _IN_ATTRIBUTES)


def attributes_of(node: Node) -> dict[str, str]:
    """Return the attributes of a node's element."""
    return {
        xml.attribute: plain_text(value)
        for name, xml in layout_of(type(node)).items()
        if xml.attribute
        for value in values(node, name)
    }


def tag_of(xml: Xml, value: object) -> str:
    """Return the tag for a value of a field."""
    return next(tag for tag, kind in xml.kinds.items() if isinstance(value, kind))


def value_lines(xml: Xml, value: object, indent: str) -> str:
    """Return the XML of a field's value, without surrounding white space."""
    tag = tag_of(xml, value)
    if isinstance(value, Node):
        return node_lines(tag, value, indent)
    return f"<{tag}>{escape(plain_text(value), _IN_TEXT)}</{tag}>"


def node_lines(tag: str, node: Node, indent: str) -> str:
    """Return the XML of a node; lines after the first begin with `indent`."""
    start = "".join(f" {name}={attribute_text(text)}" for name, text in attributes_of(node).items())
    inner = indent + INDENT
    parts: list[str] = []
    for name, xml in layout_of(type(node)).items():
        if "" not in xml.kinds:
            parts += (f"{inner}{value_lines(xml, v, inner)}\n" for v in values(node, name))
        elif not xml.attribute:
            return f"<{tag}{start}>{escape(getattr(node, name), _IN_TEXT)}</{tag}>"
    if not parts:
        return f"<{tag}{start}/>"
    return f"<{tag}{start}>\n{''.join(parts)}{indent}</{tag}>"
