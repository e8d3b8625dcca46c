"""Benchmarks, and the rows of figures that they measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class Column:
    """The look of a field of a row.

    Args:
        heading: the heading of the table's column; a mapping has one column per entry, whose key
            replaces `{}`.
        format: the format specification of values.
    """

    heading: str
    format: str = ""


@dataclass(frozen=True)
class Row:
    """Figures that belong together; a subclass annotates each field with its `Column`."""

    @property
    def met(self) -> bool | None:
        """True if the figures meet the requirement; `None` if none applies to them."""
        raise NotImplementedError

    def cells(self) -> dict[str, str]:
        """The row as a table shows it, by heading."""
        shown: dict[str, str] = {}
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            _, column = get_args(hint)
            value = getattr(self, name)
            several = value if isinstance(value, Mapping) else {"": value}
            shown |= {column.heading.format(k): _cell(v, column.format) for k, v in several.items()}
        return {**shown, "met": {True: "yes", False: "**no**", None: ""}[self.met]}


def _cell(value: object, format: str) -> str:
    return "" if value is None else f"{value:{format}}"


class Subject(Protocol):
    """A module that measures one thing.

    Attributes:
        __doc__: the subject and the method for the report; the first line is the title.
        REQUIREMENT: the requirement for the figures, in words.

    A subject outside the performance document also has a `DOCUMENT`, the name of its document. A
    subject with a picture has a function `draw`, which returns a Matplotlib figure of its rows.
    """

    __doc__: str | None
    REQUIREMENT: str

    def measure(self, *, quick: bool) -> Iterator[Row]:
        """Yield figures as they are measured; `quick` is for trying whether it works."""
