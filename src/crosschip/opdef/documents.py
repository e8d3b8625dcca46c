"""Reading and writing OpDef documents."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crosschip.ir import InputError
from crosschip.ir.files import open_regular
from crosschip.opdef.definitions import OpDefCollection
from crosschip.opdef.mapping import node_lines, read_node
from crosschip.opdef.problems import MOST, OpDefError, Place, Problem, refuse
from crosschip.opdef.rules import rule_problems
from crosschip.opdef.schema import schema_problems
from crosschip.opdef.splicing import spliced
from crosschip.opdef.tree import MAX_BYTES, Source, parse_tree

logger = logging.getLogger("crosschip")

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


@dataclass(frozen=True)
class Document:
    """A document that has been read.

    Attributes:
        collection: what it says.
        source: its text.
        warnings: the rules that it breaks and that are tolerated, as vendors' own documents break
            them; `MOST` at most, from the first line to the last.
    """

    collection: OpDefCollection
    source: Source
    warnings: tuple[Problem, ...] = ()

    def write(self, collection: OpDefCollection) -> bytes:
        """The document with another content: whatever is the same in both stays byte for byte.

        Comments, space, the declaration, the encoding and the ends of lines are kept; what is new
        is written as `write` does.

        Raises:
            InputError: the content is not one that would be read.
        """
        if collection == self.collection:
            return self.source.content
        content = self.source.encoded(spliced(self.source, self.collection, collection))
        return _checked(content, collection)


def read(path: Path | str, *, strict: bool = False) -> Document:
    """Read a document; rules that it breaks and that are tolerated are logged as warnings.

    Args:
        path: the file.
        strict: whether no rule may be broken.

    Raises:
        OpDefError: it cannot be read, is not well-formed, or breaks a rule; it names all places.
    """
    name = str(path)
    try:
        with open_regular(Path(path)) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OpDefError([Problem(Place(1, 1, name), f"cannot be read: {reason}")]) from None
    document = parse(content, name, strict=strict)
    for warning in document.warnings:
        logger.warning("%s; the document is read all the same, unless `strict` is set", warning)
    return document


def parse(content: bytes, name: str = "<document>", *, strict: bool = False) -> Document:
    """Read a document from its bytes.

    Args:
        content: the bytes.
        name: what to call it in messages.
        strict: whether no rule may be broken, those included that vendors' documents break.

    Raises:
        OpDefError: it is not well-formed, or breaks a rule; the error names all places.
    """
    source = parse_tree(content, name)
    refuse(schema_problems(source.root))
    collection = read_node(OpDefCollection, source.root)
    warnings: list[Problem] = []
    refuse(_errors(rule_problems(collection), strict, warnings))
    return Document(collection, source, tuple(sorted(warnings, key=lambda w: w.place)[:MOST]))


def _errors(
    problems: Iterable[Problem], strict: bool, warnings: list[Problem]
) -> Iterator[Problem]:
    """The problems for which a document is refused; the others are added to the warnings."""
    for problem in problems:
        if strict or not problem.is_tolerated:
            yield problem
        else:
            warnings.append(problem)


def write(collection: OpDefCollection) -> bytes:
    """The canonical document for a collection: UTF-8, four spaces a level, LF at ends of lines.

    Raises:
        InputError: the collection is not one that would be read.
    """
    text = f"{_DECLARATION}{node_lines('OpDefCollection', collection, '')}\n"
    return _checked(text.encode("utf-8", "surrogatepass"), collection)


def _checked(content: bytes, collection: OpDefCollection) -> bytes:
    """The bytes, which have been read again and say what they should."""
    try:
        reread = parse(content, "what would be written").collection
    except OpDefError as error:
        raise InputError(f"the collection cannot be written\n{error}") from None
    if reread != collection:
        raise InputError(
            "the collection cannot be written: a name in it has space that a document does not keep"
        )
    return content
