"""XML parser whose elements have locations.

It uses Python's expat, expands no entities and fetches nothing. A document type declaration is an
error, so that only XML's five predefined entities exist.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

from crosschip.opdef.problems import Location, OpDefError, Problem

MAX_BYTES = 4 * 2**20
"""The maximum size of a document; the largest known ones have 64 KB."""
MAX_ELEMENTS = 200_000
"""The maximum number of elements, 10 times that for all standard operators."""
MAX_ATTRIBUTES = 50
"""The maximum number of attributes of an element; OpDef needs 4, plus a few for a schema."""
MAX_DEPTH = 32
"""The maximum nesting depth of elements; OpDef needs 7."""

_INSTANCE = "{http://www.w3.org/2001/XMLSchema-instance}"
_HINTS = {f"{_INSTANCE}schemaLocation", f"{_INSTANCE}noNamespaceSchemaLocation"}
"""Attributes with the location of a schema: permitted but ignored."""

_ENCODINGS = {
    "ascii", "utf-8", "utf-16", "iso8859-1", "cp1252",
    "gb18030", "gbk", "gb2312", "big5", "shift_jis", "euc_jp", "euc_kr",
}  # fmt: skip
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_UTF_32 = codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, b"<\0\0\0", b"\0\0\0<"
"""First bytes of UTF-32; checked before UTF-16, whose byte order mark is a prefix of one."""
_DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_START_TAG = re.compile(rb"""<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>""")


class Element(ElementTree.Element):
    """Element of a document.

    Attributes:
        location: the location of the start tag.
        start: the offset of the element in `Source.utf8`.
        inner: the offset after the start tag.
        close: the offset of the end tag; `inner` without one (`<Name/>`).
        end: the offset after the element.
    """

    location: Location
    start: int
    inner: int
    close: int
    end: int

    @property
    def parts(self) -> list[Element]:
        """The child elements."""
        return [part for part in self if isinstance(part, Element)]


@dataclass(frozen=True)
class Source:
    """Text of a document.

    Attributes:
        content: the bytes of the file.
        utf8: the text in UTF-8, without a byte order mark.
        encoding: the encoding of `content`.
        mark: the byte order mark; may be empty.
        root: the tree.
    """

    content: bytes
    utf8: bytes
    encoding: str
    mark: bytes
    root: Element

    def encoded(self, utf8: bytes) -> bytes:
        """Encode a text like the document; unencodable characters become character references."""
        return self.mark + utf8.decode("utf-8", "surrogatepass").encode(
            self.encoding, "xmlcharrefreplace"
        )


def parse_tree(content: bytes, name: str) -> Source:
    """Parse the bytes of a document.

    Args:
        content: the bytes.
        name: the name of the document for messages.

    Raises:
        OpDefError: the document is too large or too deep, not well-formed, in an unsupported
            encoding, or has a document type declaration.
    """
    if len(content) > MAX_BYTES:
        _refuse(
            Location(1, 1, name),
            f"has {len(content)} bytes; an OpDef document has at most {MAX_BYTES}",
        )
    mark, encoding = _encoding(content, name)
    body = content[len(mark) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(encoding, "replace")
        _refuse(_end_location(before, name), f"is not {encoding}: {error.reason}")
    if "\0" in text:  # expat would assume another encoding
        before, _, _ = text.partition("\0")
        _refuse(_end_location(before, name), "has the character U+0000, which XML does not allow")
    utf8 = text.encode()
    return Source(content, utf8, encoding, mark, _Parser(utf8, name).root)


def _refuse(location: Location, message: str) -> NoReturn:
    raise OpDefError([Problem(location, message)])


def _end_location(text: str, name: str) -> Location:
    lines = re.split("\r\n|\r|\n", text)
    return Location(len(lines), len(lines[-1]) + 1, name)


def _encoding(content: bytes, name: str) -> tuple[bytes, str]:
    """Detect the byte order mark and the encoding of a document."""
    if content.startswith(_UTF_32):
        _refuse(Location(1, 1, name), "is in UTF-32, which is not read; write UTF-8")
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return mark, encoding
    if content.startswith((b"<\0", b"\0<")):
        return b"", "utf-16-le" if content.startswith(b"<\0") else "utf-16-be"
    declared = _DECLARED.match(content)
    declared_encoding = declared[1].decode() if declared else "utf-8"
    try:
        encoding = codecs.lookup(declared_encoding).name
    except LookupError:
        encoding = ""
    if encoding not in _ENCODINGS or encoding == "utf-16":
        _refuse(
            Location(1, 1, name),
            f"is declared to be in {declared_encoding}, which is not read; write UTF-8",
        )
    return b"", encoding


class _Parser:
    """Run of expat over a text."""

    def __init__(self, utf8: bytes, name: str) -> None:
        self._utf8 = utf8
        self._name = name
        self._count = 0
        self._open: list[Element] = []
        self._after: Element | None = None
        self._parser = parser = expat.ParserCreate("utf-8", "}")
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._finish
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        try:
            parser.Parse(utf8, True)
        except expat.ExpatError as error:
            location = Location(error.lineno, error.offset + 1, name)
            _refuse(location, f"is not well-formed XML: {expat.ErrorString(error.code)}")

    def _location(self) -> Location:
        parser = self._parser
        return Location(parser.CurrentLineNumber, parser.CurrentColumnNumber + 1, self._name)

    def _doctype(self, *_: object) -> None:
        begin = self._utf8.rfind(b"<!DOCTYPE", 0, self._parser.CurrentByteIndex + len("<!DOCTYPE"))
        _refuse(
            _end_location(self._utf8[:begin].decode(), self._name),
            "has a document type declaration, which could define entities; remove it",
        )

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        location = self._location()
        self._count += 1
        if self._count > MAX_ELEMENTS:
            _refuse(
                location, f"{tag}: is one of more than {MAX_ELEMENTS} elements, which is too many"
            )
        if len(attributes) > MAX_ATTRIBUTES:
            _refuse(location, f"{tag}: has {len(attributes)} attributes, which is too many")
        if len(self._open) == MAX_DEPTH:
            _refuse(location, f"{tag}: stands in more than {MAX_DEPTH} other elements")
        named = {_element_tree_name(key): value for key, value in attributes.items()}
        for key in named:
            if key.startswith(_INSTANCE) and key not in _HINTS:
                attribute = key.removeprefix(_INSTANCE)
                _refuse(
                    location, f"{tag}: has the attribute {attribute!r} of XML Schema; remove it"
                )
        element = Element(_element_tree_name(tag), named)
        element.location = location
        element.start = self._parser.CurrentByteIndex
        start_tag = _START_TAG.match(self._utf8, element.start)
        assert start_tag is not None, "expat has parsed the tag"
        element.inner = element.close = element.end = start_tag.end()
        if self._open:
            self._open[-1].append(element)
        else:
            self.root = element
        self._open.append(element)
        self._after = None

    def _finish(self, _: str) -> None:
        element = self._after = self._open.pop()
        if not self._utf8.endswith(b"/>", element.start, element.inner):
            element.close = self._parser.CurrentByteIndex
            element.end = self._utf8.index(b">", element.close) + 1

    def _text(self, text: str) -> None:
        if self._after is not None:
            self._after.tail = (self._after.tail or "") + text
        elif self._open:
            self._open[-1].text = (self._open[-1].text or "") + text


def _element_tree_name(name: str) -> str:
    """Convert an expat name to ElementTree's notation."""
    return "{" + name if "}" in name else name
