"""Plain-text tables for logs and pipes, with lines of any length."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence

_GAP = "  "


def columns(
    head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[str] = ()
) -> str:
    """Format a table with one line for its head and one for each row.

    Args:
        head: the names of the columns.
        rows: the cells of each row; the lines of a cell are joined with semicolons.
        numbers: the names of the columns that are aligned to the right.
    """
    cells = [list(head), *([_in_one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    right = [name in numbers for name in head]
    return "\n".join(
        _GAP.join(
            " " * (width - _width(cell)) + cell if aligned else cell + " " * (width - _width(cell))
            for cell, width, aligned in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    )


def _in_one_line(cell: object) -> str:
    return "; ".join(str(cell).splitlines())


def _width(text: str) -> int:
    """Return the number of a terminal's columns that a text takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    combining = sum(unicodedata.combining(character) != 0 for character in text)
    return len(text) + wide - combining
