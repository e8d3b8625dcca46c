"""Texts of generated files: templates that are filled in, and paragraphs that fit their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import wrap
from unicodedata import east_asian_width

from crosschip.ir.text import legible
from crosschip.opdef.definitions import Code, Description

WIDTH = 100
"""The columns of a generated file."""

_TEMPLATES = Path(__file__).with_name("templates")
_HOLE = re.compile(r"\{\{(\w+)\}\}")


def filled(template: str, **words: str) -> str:
    """Return the text of a template: each `{{word}}` in it is replaced by what the word stands for.

    Args:
        template: its path among the templates, without `.in`.
        words: what they stand for; it is not looked through again.
    """
    text = (_TEMPLATES / f"{template}.in").read_text("utf-8")
    return _HOLE.sub(lambda hole: words[hole[1]], text)


def paragraphs(description: Description | None, width: int) -> list[list[str]]:
    """Return the lines of each part of a description; code keeps its lines, and is indented."""
    parts = description.parts if description else ()
    line_groups = [
        list(_code(part.text, width)) if isinstance(part, Code) else sentence(part.text, width)
        for part in parts
    ]
    return [lines for lines in line_groups if lines]


def sentence(text: str, width: int, hanging: str = "") -> list[str]:
    """Return a text as lines, of which those after the first begin with `hanging`."""
    return _wrapped(" ".join(text.split()), width, hanging=hanging)


def columns(text: str) -> int:
    """Return the columns that a text takes on a terminal: two for what is wide, as Chinese is."""
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
    """Lines of a docstring that is delimited by three quotation marks; empty ones stay empty."""
    escaped = (line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in lines)
    return "\n".join(f"{indent}{line}" if line else "" for line in escaped)


def in_comment(lines: Iterable[str]) -> str:
    """Lines of a comment in C, each behind an asterisk."""
    plain = (line.replace("*/", "* /").replace("/*", "/ *") for line in lines)
    return "\n".join(f" * {line}" if line else " *" for line in plain)


def listed(words: Iterable[str], last: str = "and") -> str:
    """Words as an enumeration: `a, b and c`."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def imported(module: str, *names: str) -> str:
    """Return the statement that imports names from a module."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])
