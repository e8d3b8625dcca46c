"""Output of commands: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.table import Table

_WITHOUT_END = 10_000
_SECONDS_OF_SILENCE = 20.0


def _width() -> int | None:
    """The columns of the terminal; what goes elsewhere is not cut, unless `COLUMNS` says where."""
    return None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WITHOUT_END


# What is printed comes from model files: `[x]` and `:x:` in a name are no markup.
console = Console(markup=False, emoji=False, width=_width())
messages = Console(stderr=True, markup=False, emoji=False)

_UNBROKEN = 40  # half of what most terminals are wide


def document(content: object) -> None:
    """Print a JSON document, in ASCII, so that no terminal's encoding stands in its way."""
    print(json.dumps(content, indent=2))


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: str = ""
) -> None:
    """Print a table.

    Columns of numbers, named in `numbers` (separated by commas), are right-aligned. The first
    column, if it is not long, and numbers keep to one line; if the terminal is narrow, the others
    wrap.
    """
    cells = [list(map(str, row)) for row in rows]
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


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what takes long, while it does: on a terminal at once, in a log after some seconds."""
    if messages.is_terminal:
        with messages.status(what):
            yield
        return
    said = Timer(_SECONDS_OF_SILENCE, lambda: print(f"{what} …", file=sys.stderr, flush=True))
    said.daemon = True
    said.start()
    try:
        yield
    finally:
        said.cancel()
