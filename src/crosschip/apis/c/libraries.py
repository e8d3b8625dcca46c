"""The C libraries that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from crosschip.apis.c.header import FOLDER, Header

PREFIX = "crosschip_py_"
"""What comes before the name of a function's Python side."""


@dataclass(frozen=True)
class Library:
    """A C library.

    Attributes:
        name: its name, as in `-lname`.
        summary: the interface that it has.
        exported: the header whose functions it exports.
        side: its Python side: a class, as `module:Class`, of a `Side`.
        included: the headers that this one includes, those that others need first.
        failures: the type of results that are codes, and the code that is returned if Python does
            not start; functions with other results return 0.
    """

    name: str
    summary: str
    exported: str
    side: str
    included: Sequence[str] = ()
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"lib{self.name}.so"

    @property
    def module(self) -> str:
        """The name of the module that cffi makes of it."""
        return f"_crosschip_{self.name}"

    @cached_property
    def header(self) -> Header:
        """The header whose functions it exports."""
        return Header(FOLDER / self.exported)

    @property
    def headers(self) -> tuple[Header, ...]:
        """All headers, those that others need first."""
        return (*(Header(FOLDER / name) for name in self.included), self.header)


LIBRARIES: Sequence[Library] = (
    Library(
        "nnadapter",
        "NNAdapter",
        "nnadapter.h",
        "crosschip.apis.c.nnadapter:NNAdapterSide",
        failures={"int": "NNADAPTER_DEVICE_INTERNAL_ERROR"},
    ),
)
"""All libraries, in the order in which they are built."""
