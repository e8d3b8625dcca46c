"""How commands print: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

console = Console()
messages = Console(stderr=True)


def document(content: object) -> None:
    """Print a JSON document."""
    print(json.dumps(content, indent=2, ensure_ascii=False))


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: str = ""
) -> None:
    """Print a table; the columns named in `numbers` (separated by commas) are right-aligned."""
    shown = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        right = column in numbers.split(",")
        shown.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(str, row))
    console.print(shown)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say on a terminal what takes long, while it does."""
    if messages.is_terminal:
        with messages.status(what):
            yield
    else:
        yield
