"""Output of commands: tables, or a JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from crosschip.drawing import columns as plain_columns

_WITHOUT_END = 10_000


def _width() -> int | None:
    """Return the columns of the terminal; a large number for other outputs."""
    return None if sys.stdout.isatty() else _WITHOUT_END


# Names come from model files: `[x]` and `:x:` in them are no markup.
console = Console(markup=False, emoji=False, width=_width())
messages = Console(stderr=True, markup=False, emoji=False)

_UNBROKEN = 40  # half of what most terminals are wide


def write(path: Path, text: str) -> None:
    """Write a text to a file.

    Raises:
        InputError: the file cannot be written.
    """
    # Imported late: few commands write files, and the import takes long.
    from crosschip.runtime.artifact.atomic_files import write_user_file

    write_user_file(path, [text.encode()])


def document(content: object) -> None:
    """Print a JSON document in ASCII, which every terminal's encoding supports."""
    print(json.dumps(content, indent=2))


def print_error(error: Exception) -> None:
    """Print the error of a failed command."""
    print(f"error: {error}", file=sys.stderr)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: str = ""
) -> None:
    """Print a table: with borders on a terminal, otherwise as plain aligned text.

    The columns in `numbers` (separated by commas) are right-aligned. On a narrow terminal, columns
    wrap, except for these and the first one, unless that is long.
    """
    cells = [list(map(str, row)) for row in rows]
    if not console.is_terminal:
        if title:
            print(title)
        print(plain_columns(columns, cells, numbers.split(",")), end="\n\n")
        return
    short = all(len(row[0]) <= _UNBROKEN for row in cells)
    shown = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        right = column in numbers.split(",")
        shown.add_column(
            column,
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=right or (index == 0 and short),
        )
    for row in cells:
        shown.add_row(*row)
    console.print(shown)
