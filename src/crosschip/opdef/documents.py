"""Reading and writing of OpDef documents."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crosschip.ir import InputError
from crosschip.ir.files import open_regular
from crosschip.opdef.definitions import OpDefCollection
from crosschip.opdef.mapping import node_lines, read_node
from crosschip.opdef.problems import MOST, Location, OpDefError, Problem, refuse
from crosschip.opdef.rules import rule_problems
from crosschip.opdef.schema import schema_problems
from crosschip.opdef.splicing import edit_text
from crosschip.opdef.tree import MAX_BYTES, Source, parse_tree

logger = logging.getLogger("crosschip")

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


@dataclass(frozen=True)
class Document:
    """Parsed document.

    Attributes:
        collection: the content.
        source: the text.
        warnings: violations of rules that vendors' documents break and that are therefore
            tolerated; sorted by line, `MOST` at most.
    """

    collection: OpDefCollection
    source: Source
    warnings: tuple[Problem, ...] = ()

    def write(self, collection: OpDefCollection) -> bytes:
        """Return the document with other content; unchanged parts stay byte for byte.

        Comments, white space, the declaration, the encoding and line ends are kept. New parts have
        the format of `write`.

        Raises:
            InputError: the content could not be read back.
        """
        if collection == self.collection:
            return self.source.content
        content = self.source.encoded(edit_text(self.source, self.collection, collection))
        return _check_readable(content, collection)


def read(path: Path | str, *, strict: bool = False) -> Document:
    """Read a document from a file; log tolerated violations of rules as warnings.

    Args:
        path: the file.
        strict: whether to refuse every violation.

    Raises:
        OpDefError: the file cannot be read, is not well-formed, or breaks a rule; the error lists
            all locations.
    """
    name = str(path)
    try:
        with open_regular(Path(path)) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OpDefError([Problem(Location(1, 1, name), f"cannot be read: {reason}")]) from None
    document = parse(content, name, strict=strict)
    for warning in document.warnings:
        logger.warning("%s; the document is read all the same, unless `strict` is set", warning)
    return document


def parse(content: bytes, name: str = "<document>", *, strict: bool = False) -> Document:
    """Read a document from bytes.

    Args:
        content: the bytes.
        name: the name of the document for messages.
        strict: whether to refuse every violation; otherwise violations that occur in vendors'
            documents are logged as warnings.

    Raises:
        OpDefError: the document is not well-formed or breaks a rule; the error lists all locations.
    """
    source = parse_tree(content, name)
    refuse(schema_problems(source.root))
    collection = read_node(OpDefCollection, source.root)
    warnings: list[Problem] = []
    refuse(_errors(rule_problems(collection), strict, warnings))
    return Document(collection, source, tuple(sorted(warnings, key=lambda w: w.location)[:MOST]))


def _errors(
    problems: Iterable[Problem], strict: bool, warnings: list[Problem]
) -> Iterator[Problem]:
    """Yield the problems that are errors; append the others to `warnings`."""
    for problem in problems:
        if strict or not problem.is_tolerated:
            yield problem
        else:
            warnings.append(problem)


def write(collection: OpDefCollection) -> bytes:
    """Return the canonical document of a collection: UTF-8, four spaces per level, LF line ends.

    Raises:
        InputError: the collection could not be read back.
    """
    text = f"{_DECLARATION}{node_lines('OpDefCollection', collection, '')}\n"
    return _check_readable(text.encode("utf-8", "surrogatepass"), collection)


def _check_readable(content: bytes, collection: OpDefCollection) -> bytes:
    """Check that the bytes parse to the collection, and return them."""
    try:
        reread = parse(content, "what would be written").collection
    except OpDefError as error:
        raise InputError(f"the collection cannot be written\n{error}") from None
    if reread != collection:
        raise InputError(
            "the collection cannot be written: a name in it has space that a document does not keep"
        )
    return content
