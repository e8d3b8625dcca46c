"""Identifiers of the package keep to the naming rule of CONTRIBUTING.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"

PARTICIPLES = frozenset({"found", "made", "given", "kept", "told", "asked"})
"""Words that say what happened to a value, not what it is."""

METAPHORS = frozenset(
    {
        *("apart", "aside", "behind", "border", "company", "culprits", "elsewhere", "faces"),
        *("hearing", "marks", "patience", "rooms", "ways", "wishes"),
    }
)

AMBIGUOUS = frozenset(
    {"about", "asks", "every", "give_back", "meant", "meeting", "misfit", "owners"}
)


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names, attributes, arguments, functions and classes of a module, with their lines."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name, line
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, line


@pytest.mark.parametrize(
    "words", [PARTICIPLES, METAPHORS, AMBIGUOUS], ids=["participles", "metaphors", "ambiguous"]
)
def test_identifiers_are_words_of_the_field(words: frozenset[str]) -> None:
    vague = []
    for path in sorted(SOURCES.rglob("*.py")):
        name = str(path.relative_to(SOURCES))
        if path.stem.lstrip("_") in words:
            vague.append(name)
        for identifier, line in identifiers(ast.parse(path.read_text("utf-8"))):
            if identifier.strip("_").lower() in words:
                vague.append(f"{name}:{line}: {identifier}")
    assert not vague
