"""Tables as plain text: for logs and pipes, where no line is cut and no boxes are drawn."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence

_GAP = "  "


def columns(
    head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[str] = ()
) -> str:
    """A table with a line for its head and one for each row, however long they become.

    Args:
        head: the names of the columns.
        rows: the cells of each row; the lines of one become one line, with semicolons between.
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
    """The number of columns of a terminal that a text takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    combining = sum(unicodedata.combining(character) != 0 for character in text)
    return len(text) + wide - combining
