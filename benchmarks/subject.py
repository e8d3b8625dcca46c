"""Benchmarks, and the rows of figures that they measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class Column:
    """The look of a field of a row.

    Args:
        heading: of the table's column; a mapping takes a column an entry, with the entry's key in
            place of `{}`.
        format: how a value is written.
    """

    heading: str
    format: str = ""


@dataclass(frozen=True)
class Row:
    """Figures that belong together; a subclass annotates each field with its `Column`."""

    @property
    def held(self) -> bool | None:
        """True if the figures are within the bar; `None` if no bar applies to them."""
        raise NotImplementedError

    def cells(self) -> dict[str, str]:
        """The row as a table shows it, by heading."""
        shown: dict[str, str] = {}
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            _, column = get_args(hint)
            value = getattr(self, name)
            several = value if isinstance(value, Mapping) else {"": value}
            shown |= {column.heading.format(k): _cell(v, column.format) for k, v in several.items()}
        return {**shown, "held": {True: "yes", False: "**no**", None: ""}[self.held]}


def _cell(value: object, format: str) -> str:
    return "" if value is None else f"{value:{format}}"


class Subject(Protocol):
    """A module that measures one thing.

    Attributes:
        __doc__: what it measures and how, as the report says it; the first line is the title.
        BAR: what the figures are held to, in words.

    One that is not about performance also has a `DOCUMENT`, the name of the document it is in, and
    one with a picture a function `draw`, which makes a figure of Matplotlib of its rows.
    """

    __doc__: str | None
    BAR: str

    def measure(self, *, quick: bool) -> Iterator[Row]:
        """Yield figures as they are measured; `quick` is for trying whether it works."""
