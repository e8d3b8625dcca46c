"""Defects of OpDef documents: each with the file, the line and the column where it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crosschip.ir import Error
from crosschip.ir.text import legible

_SHOWN = 100
"""The most problems that one message names."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a document.

    Attributes:
        line: counted from 1.
        column: the character of the line, counted from 1.
        file: the document's name.
    """

    line: int
    column: int
    file: str = ""

    def __str__(self) -> str:
        return f"{legible(self.file)}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that a document breaks.

    Attributes:
        place: where; the beginning of the element that is at fault.
        message: the rule, and what to do.
    """

    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class OpDefError(Error):
    """A document is not an OpDef document, or breaks its rules.

    Attributes:
        problems: all that were found, from the first line to the last.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.place))
        lines = [str(problem) for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"… and {len(self.problems) - _SHOWN} more")
        super().__init__("\n".join(lines))
