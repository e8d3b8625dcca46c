"""Errors of OpDef documents, with file, line and column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice

from crosschip.ir import Error
from crosschip.ir.text import legible

MOST = 100
"""The maximum number of problems that are reported for one document."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """Location in a document.

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
    """Violation of a rule by a document.

    Attributes:
        location: the start of the offending element.
        message: the rule, and what to do.
        is_tolerated: whether vendors' documents break the rule, so that it is only a warning.
    """

    location: Location
    message: str
    is_tolerated: bool = False

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


class OpDefError(Error):
    """Document that is not an OpDef document or breaks its rules.

    Attributes:
        problems: the violations, sorted by line; `MOST` at most.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        first_problems = list(islice(problems, MOST + 1))
        self.problems = tuple(sorted(first_problems[:MOST], key=lambda problem: problem.location))
        lines = [str(problem) for problem in self.problems]
        super().__init__(
            "\n".join([*lines, *(["… and more"] if len(first_problems) > MOST else [])])
        )


def refuse(problems: Iterable[Problem]) -> None:
    """Raise an `OpDefError` if there is a problem."""
    remaining = iter(problems)
    first = next(remaining, None)
    if first is not None:
        raise OpDefError(chain([first], remaining))
