"""Tables as plain text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import NamedTuple

from crosschip.drawing.columns import columns as format_columns
from crosschip.ir.text import legible

_OPEN_ROWS = 12
"""Tables with more rows are folded."""

_MOST_ROWS = 400
"""The maximum number of rows of a table in a notebook."""

_CELL = "text-align:{};vertical-align:top;white-space:pre-wrap"
_SCROLL = "overflow-x:auto"
"""Wide tables scroll, so that no word in them is broken."""

_PARAGRAPH = "margin:0.4em 0"


class Table(NamedTuple):
    """A table.

    Attributes:
        title: the title; empty for none.
        columns: the names of the columns.
        rows: the cells of each row.
        numbers: the names of the columns that are aligned to the right.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    numbers: Collection[str] = ()


def to_text(heading: str, tables: Iterable[Table], notes: Iterable[str] = ()) -> str:
    """Return a heading, tables and notes as plain text."""
    blocks = [heading]
    for table in tables:
        title = f"{table.title}\n" if table.title else ""
        blocks.append(title + format_columns(table.columns, table.rows, table.numbers))
    return "\n\n".join([*blocks, *notes])


def to_html(heading: str, tables: Iterable[Table], notes: Iterable[str] = ()) -> str:
    """Return a heading, tables and notes as HTML, in the colours of the notebook.

    All texts are escaped. Long tables are folded.
    """
    paragraphs = [f"<b>{_text(heading)}</b>", *map(_text, notes)]
    body = [f'<p style="{_PARAGRAPH}">{paragraph}</p>' for paragraph in paragraphs]
    return f"<div>{''.join([*body, *map(_table, tables)])}</div>"


def _table(table: Table) -> str:
    rows = table.rows[:_MOST_ROWS]
    sides = ["right" if column in table.numbers else "left" for column in table.columns]
    head = _row("th", table.columns, sides) if any(table.columns) else ""
    body = "".join(_row("td", [str(cell) for cell in row], sides) for row in rows)
    table_html = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    html = f'<div style="{_SCROLL}">{table_html}</div>'
    if len(table.rows) > len(rows):
        html += f"<p>and {len(table.rows) - len(rows):,} more</p>"
    is_open = " open" if len(table.rows) <= _OPEN_ROWS else ""
    count = "" if is_open else f" ({len(table.rows):,})"
    return f"<details{is_open}><summary>{_text(table.title)}{count}</summary>{html}</details>"


def _row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    styled = zip(cells, sides, strict=True)
    inner = (
        f'<{tag} style="{_CELL.format(side)}">{_breakable(cell)}</{tag}>' for cell, side in styled
    )
    return f"<tr>{''.join(inner)}</tr>"


def _breakable(cell: str) -> str:
    """Escape a cell, whose lines may break in lists of operators such as `CONV_2D+RELU`."""
    return _text(cell).replace("+", "+<wbr>")


def _text(text: str) -> str:
    """Escape a text, which may have several lines, for HTML."""
    return escape("\n".join(legible(line) for line in text.splitlines()))
