"""Minimal edits of a document's text: only parts that differ are rewritten."""

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


def edit_text(source: Source, old: Node, new: Node) -> bytes:
    """Return a document's text, in UTF-8, edited to new content.

    Args:
        source: the text.
        old: the content of the text.
        new: the new content.
    """
    text, root = source.utf8, source.root
    ends = re.search(rb"\r\n|\n|\r", text)
    editor = _Editor(text, ends[0] if ends else b"\n")
    return text[: root.start] + editor.node(root, old, new) + text[root.end :]


@dataclass
class _Piece:
    """Child element of a text, with the white space before it.

    Attributes:
        gap: the white space and comments before the element.
        text: the element.
        name: the field of the element.
        value: the original value.
        element: the original element; `None` for a new one.
        deleted: whether the element is deleted.
    """

    gap: bytes
    text: bytes
    name: str
    value: Any
    element: Element | None = None
    deleted: bool = False


class _Editor:
    """Editor of one text."""

    def __init__(self, text: bytes, newline: bytes) -> None:
        self._text = text
        self._newline = newline

    def node(self, element: Element, old: Node, new: Node) -> bytes:
        """Return the text of an element edited to new content."""
        if old == new:
            return self._text[element.start : element.end]
        layout = {name: xml for name, xml in layout_of(type(new)).items() if "" not in xml.kinds}
        if not element.parts or type(old) is not type(new):
            return self._encode(node_lines(element.tag, new, self._indent(element)))
        pieces = list(self._pieces(element, old, layout))
        for name, xml in layout.items():
            before, after = values(old, name), values(new, name)
            if before != after:
                self._edit(pieces, element, list(layout), name, xml, after)
        inside = b"".join(piece.gap + piece.text for piece in pieces if not piece.deleted)
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
        """Change a field's values; values that it keeps are not moved."""
        siblings = [piece for piece in pieces if piece.name == name]
        matcher = SequenceMatcher(None, [piece.value for piece in siblings], after, autojunk=False)
        for how, i, k, j, m in reversed(matcher.get_opcodes()):
            if how == "equal":
                continue
            shared = min(k - i, m - j)
            for piece, value in zip(siblings[i : i + shared], after[j : j + shared], strict=True):
                piece.text = self._replacement(piece, xml, value)
            for piece in siblings[i + shared : k]:
                piece.deleted = True
            at = self._insertion_index(pieces, siblings, order, name, i + shared)
            for value in reversed(after[j + shared : m]):
                pieces.insert(at, self._new(pieces, parent, at, name, xml, value))

    @staticmethod
    def _insertion_index(
        pieces: list[_Piece],
        siblings: list[_Piece],
        order: Sequence[str],
        name: str,
        index: int,
    ) -> int:
        """Return the index for a new piece, after the first `index` pieces of its field."""
        if siblings:
            return pieces.index(siblings[index - 1]) + 1 if index else pieces.index(siblings[0])
        rank = order.index(name)
        before = [i for i, piece in enumerate(pieces) if order.index(piece.name) < rank]
        return before[-1] + 1 if before else 0

    def _replacement(self, piece: _Piece, xml: Xml, value: Any) -> bytes:
        element = piece.element
        assert element is not None, "only what was read is replaced"
        if isinstance(value, Node) and element.tag == tag_of(xml, value):
            return self.node(element, piece.value, value)
        return self._encode(value_lines(xml, value, self._indent(element)))

    def _new(
        self, pieces: list[_Piece], parent: Element, at: int, name: str, xml: Xml, value: Any
    ) -> _Piece:
        line = _LINE.search(self._text[: parent.parts[0].start])
        indent = line[2].decode() if line else self._indent(parent) + INDENT
        gap = self._newline + indent.encode() if line else b""
        return _Piece(gap, self._encode(value_lines(xml, value, indent)), name, value)

    def _indent(self, element: Element) -> str:
        """Return the white space before an element that begins a line."""
        line = _LINE.search(self._text[: element.start])
        return line[2].decode() if line else ""

    def _encode(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass").replace(b"\n", self._newline)

    def _start_tag(self, element: Element, old: dict[str, str], new: dict[str, str]) -> bytes:
        """Return the start tag with changed attributes rewritten."""
        tag = self._text[element.start : element.inner]
        for name in {**old, **new}:
            value = new.get(name)
            if value == old.get(name):
                continue
            quoted = b"" if value is None else self._encode(f" {name}={attribute_text(value)}")
            pattern = re.compile(rb"""\s+%s\s*=\s*(?:"[^"]*"|'[^']*')""" % name.encode())
            if name in old:
                tag = pattern.sub(lambda _, text=quoted: text, tag, count=1)  # type: ignore[misc]
            else:
                tag = tag[:-1].rstrip() + quoted + b">"
        return tag
