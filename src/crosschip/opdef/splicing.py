"""The text of a document with another content: only what differs is written anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from crosschip.opdef.definitions import Node, Xml, layout_of, values
from crosschip.opdef.mapping import (
    INDENT,
    attribute_text,
    attributes_of,
    node_lines,
    read_value,
    tag_of,
    value_lines,
)
from crosschip.opdef.tree import Element, Source

_LINE = re.compile(rb"(\r\n|\n|\r)([ \t]*)$")


def spliced(source: Source, old: Node, new: Node) -> bytes:
    """The text of a document, in UTF-8, with another content.

    Args:
        source: the document's text.
        old: its content.
        new: the other content.
    """
    text, root = source.utf8, source.root
    ends = re.search(rb"\r\n|\n|\r", text)
    splicing = _Splicing(text, ends[0] if ends else b"\n")
    return text[: root.start] + splicing.node(root, old, new) + text[root.end :]


@dataclass
class _Piece:
    """An element in its place, with the text before it; without an element, one that is gone.

    Attributes:
        gap: the space and comments before it.
        text: the element.
        name: the field that it belongs to.
        value: its value as it was.
        element: the element as it was; `None` if it is new.
        gone: whether it is left out.
    """

    gap: bytes
    text: bytes
    name: str
    value: Any
    element: Element | None = None
    gone: bool = False


class _Splicing:
    """Edits of one text."""

    def __init__(self, text: bytes, newline: bytes) -> None:
        self._text = text
        self._newline = newline

    def node(self, element: Element, old: Node, new: Node) -> bytes:
        """The text of an element with another content."""
        if old == new:
            return self._text[element.start : element.end]
        layout = {name: xml for name, xml in layout_of(type(new)).items() if "" not in xml.kinds}
        if not element.parts or type(old) is not type(new):
            return self._encoded(node_lines(element.tag, new, self._indent(element)))
        pieces = list(self._pieces(element, old, layout))
        for name, xml in layout.items():
            before, after = values(old, name), values(new, name)
            if before != after:
                self._edit(pieces, element, list(layout), name, xml, after)
        inside = b"".join(piece.gap + piece.text for piece in pieces if not piece.gone)
        last = element.parts[-1].end
        start = self._start_tag(element, attributes_of(old), attributes_of(new))
        return start + inside + self._text[last : element.end]

    def _pieces(self, element: Element, old: Node, layout: dict[str, Xml]) -> Iterator[_Piece]:
        of_tag = {tag: (name, xml) for name, xml in layout.items() for tag in xml.kinds}
        position = element.inner
        for part in element.parts:
            name, xml = of_tag[part.tag]
            gap, text = self._text[position : part.start], self._text[part.start : part.end]
            yield _Piece(gap, text, name, read_value(xml, part), part)
            position = part.end

    def _edit(
        self,
        pieces: list[_Piece],
        parent: Element,
        order: Sequence[str],
        name: str,
        xml: Xml,
        after: Sequence[Any],
    ) -> None:
        """Give a field other values: those that it keeps stay where they are."""
        own = [piece for piece in pieces if piece.name == name]
        matcher = SequenceMatcher(None, [piece.value for piece in own], after, autojunk=False)
        for how, i, k, j, m in reversed(matcher.get_opcodes()):
            if how == "equal":
                continue
            shared = min(k - i, m - j)
            for piece, value in zip(own[i : i + shared], after[j : j + shared], strict=True):
                piece.text = self._replaced(piece, xml, value)
            for piece in own[i + shared : k]:
                piece.gone = True
            at = self._place_of(pieces, own, order, name, i + shared)
            for value in reversed(after[j + shared : m]):
                pieces.insert(at, self._new(pieces, parent, at, name, xml, value))

    @staticmethod
    def _place_of(
        pieces: list[_Piece], own: list[_Piece], order: Sequence[str], name: str, index: int
    ) -> int:
        """The index at which a new piece goes, after the first `index` of its field."""
        if own:
            return pieces.index(own[index - 1]) + 1 if index else pieces.index(own[0])
        rank = order.index(name)
        before = [i for i, piece in enumerate(pieces) if order.index(piece.name) < rank]
        return before[-1] + 1 if before else 0

    def _replaced(self, piece: _Piece, xml: Xml, value: Any) -> bytes:
        element = piece.element
        assert element is not None, "only what was read is replaced"
        if isinstance(value, Node) and element.tag == tag_of(xml, value):
            return self.node(element, piece.value, value)
        return self._encoded(value_lines(xml, value, self._indent(element)))

    def _new(
        self, pieces: list[_Piece], parent: Element, at: int, name: str, xml: Xml, value: Any
    ) -> _Piece:
        line = _LINE.search(self._text[: parent.parts[0].start])
        indent = line[2].decode() if line else self._indent(parent) + INDENT
        gap = self._newline + indent.encode() if line else b""
        return _Piece(gap, self._encoded(value_lines(xml, value, indent)), name, value)

    def _indent(self, element: Element) -> str:
        """The space before an element that begins its line."""
        line = _LINE.search(self._text[: element.start])
        return line[2].decode() if line else ""

    def _encoded(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass").replace(b"\n", self._newline)

    def _start_tag(self, element: Element, old: dict[str, str], new: dict[str, str]) -> bytes:
        """The start tag, in which only attributes that differ are written anew."""
        tag = self._text[element.start : element.inner]
        for name in {**old, **new}:
            value = new.get(name)
            if value == old.get(name):
                continue
            quoted = b"" if value is None else self._encoded(f" {name}={attribute_text(value)}")
            pattern = re.compile(rb"""\s+%s\s*=\s*(?:"[^"]*"|'[^']*')""" % name.encode())
            if name in old:
                tag = pattern.sub(lambda _, text=quoted: text, tag, count=1)  # type: ignore[misc]
            else:
                tag = tag[:-1].rstrip() + quoted + b">"
        return tag
