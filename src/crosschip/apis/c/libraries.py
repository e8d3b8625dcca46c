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
        required: the names of the libraries that programs link with as well.
        failures: the type of results that are codes, and the code that is returned if Python does
            not start; functions with other results return 0.
    """

    name: str
    summary: str
    exported: str
    side: str
    included: Sequence[str] = ()
    required: Sequence[str] = ()
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


_NNRT = "neural_network_runtime/neural_network"

LIBRARIES: Sequence[Library] = (
    Library(
        "nnadapter",
        "NNAdapter",
        "nnadapter.h",
        "crosschip.apis.c.nnadapter:NNAdapterSide",
        failures={"int": "NNADAPTER_DEVICE_INTERNAL_ERROR"},
    ),
    Library(
        "neural_network_core",
        "NNRt, to compile and run models",
        f"{_NNRT}_core.h",
        "crosschip.apis.c.nnrt.core:CoreSide",
        included=(f"{_NNRT}_runtime_type.h",),
        failures={"OH_NN_ReturnCode": "OH_NN_FAILED"},
    ),
    Library(
        "neural_network_runtime",
        "NNRt, to build models",
        f"{_NNRT}_runtime.h",
        "crosschip.apis.c.nnrt.runtime:RuntimeSide",
        included=(f"{_NNRT}_runtime_type.h", f"{_NNRT}_core.h"),
        required=("neural_network_core",),
        failures={"OH_NN_ReturnCode": "OH_NN_FAILED"},
    ),
)
"""All libraries, in the order in which they are built."""
