"""Text of generated files: templates and wrapped paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import wrap
from unicodedata import east_asian_width

from crosschip.ir.text import legible
from crosschip.opdef.definitions import Code, Description

WIDTH = 100
"""The line width of generated files."""

_TEMPLATES = Path(__file__).with_name("templates")
_HOLE = re.compile(r"\{\{(\w+)\}\}")


def fill_template(template: str, **words: str) -> str:
    """Return a template with each `{{word}}` replaced.

    Args:
        template: the path of the template, without `.in`.
        words: the replacements, which are not searched again.
    """
    text = (_TEMPLATES / f"{template}.in").read_text("utf-8")
    return _HOLE.sub(lambda hole: words[hole[1]], text)


def paragraphs(description: Description | None, width: int) -> list[list[str]]:
    """Return the wrapped lines of each part of a description; code keeps its lines, indented."""
    parts = description.parts if description else ()
    line_groups = [
        list(_code(part.text, width)) if isinstance(part, Code) else sentence(part.text, width)
        for part in parts
    ]
    return [lines for lines in line_groups if lines]


def sentence(text: str, width: int, hanging: str = "") -> list[str]:
    """Wrap a text; lines after the first begin with `hanging`."""
    return _wrapped(" ".join(text.split()), width, hanging=hanging)


def columns(text: str) -> int:
    """Return the width of a text on a terminal; East Asian wide characters take two columns."""
    return len(text) + sum(east_asian_width(character) in "WF" for character in text)


def _wrapped(text: str, width: int, first: str = "", hanging: str = "") -> list[str]:
    wide = re.sub("(.)", lambda c: c[1] + "\0" * (columns(c[1]) - 1), legible(text))
    lines = wrap(
        wide, width, initial_indent=first, subsequent_indent=hanging, break_on_hyphens=False
    )
    return [line.replace("\0", "") for line in lines]


def _code(text: str, width: int) -> Iterator[str]:
    for line in text.expandtabs(4).splitlines():
        if line.strip():
            yield from _wrapped(line.rstrip(), width, " " * 4)


def in_docstring(lines: Iterable[str], indent: str) -> str:
    """Indent and escape lines for a docstring; empty lines stay empty."""
    escaped = (line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in lines)
    return "\n".join(f"{indent}{line}" if line else "" for line in escaped)


def in_comment(lines: Iterable[str]) -> str:
    """Escape lines for a C comment and prefix them with asterisks."""
    plain = (line.replace("*/", "* /").replace("/*", "/ *") for line in lines)
    return "\n".join(f" * {line}" if line else " *" for line in plain)


def join_words(words: Iterable[str], last: str = "and") -> str:
    """Join words to a phrase: `a, b and c`."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def import_statement(module: str, *names: str) -> str:
    """Return the statement that imports names from a module."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])
