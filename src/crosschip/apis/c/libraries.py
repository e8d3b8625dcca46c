"""The C libraries that can be built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from crosschip.apis.c.header import FOLDER, Header

PREFIX = "crosschip_py_"
"""The prefix of the name of a function's Python implementation."""


@dataclass(frozen=True)
class Library:
    """A C library.

    Attributes:
        name: the library's name, as in `-lname`.
        summary: the interface that it provides.
        exported: the header whose functions it exports.
        bindings: the Python implementation: a subclass of `Bindings`, as `module:Class`.
        included: the headers that `exported` includes, in the order of their dependencies.
        required: the names of the libraries that programs must also link against.
        failures: the return types that are codes, with the code that is returned if Python does
            not start; functions with other types return 0.
    """

    name: str
    summary: str
    exported: str
    bindings: str
    included: Sequence[str] = ()
    required: Sequence[str] = ()
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The file name."""
        return f"lib{self.name}.so"

    @property
    def module(self) -> str:
        """The name of the module that cffi generates."""
        return f"_crosschip_{self.name}"

    @cached_property
    def header(self) -> Header:
        """The header whose functions it exports."""
        return Header(FOLDER / self.exported)

    @property
    def headers(self) -> tuple[Header, ...]:
        """All headers, in the order of their dependencies."""
        return (*(Header(FOLDER / name) for name in self.included), self.header)


_NNRT = "neural_network_runtime/neural_network"

LIBRARIES: Sequence[Library] = (
    Library(
        "nnadapter",
        "NNAdapter",
        "nnadapter.h",
        "crosschip.apis.c.nnadapter:NNAdapterBindings",
        failures={"int": "NNADAPTER_DEVICE_INTERNAL_ERROR"},
    ),
    Library(
        "neural_network_core",
        "NNRt, to compile and run models",
        f"{_NNRT}_core.h",
        "crosschip.apis.c.nnrt.core:CoreBindings",
        included=(f"{_NNRT}_runtime_type.h",),
        failures={"OH_NN_ReturnCode": "OH_NN_FAILED"},
    ),
    Library(
        "neural_network_runtime",
        "NNRt, to build models",
        f"{_NNRT}_runtime.h",
        "crosschip.apis.c.nnrt.runtime:RuntimeBindings",
        included=(f"{_NNRT}_runtime_type.h", f"{_NNRT}_core.h"),
        required=("neural_network_core",),
        failures={"OH_NN_ReturnCode": "OH_NN_FAILED"},
    ),
)
"""All libraries, in build order."""
