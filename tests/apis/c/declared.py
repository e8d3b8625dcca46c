"""Headers held to what is asserted of them, by compilers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

from cffi import FFI
from tests.apis.c.conftest import compiler_of

from crosschip.apis.c.header import FOLDER, Function, Header

Members = Mapping[str, tuple[int, int]]
"""The offset and the size of each member of a structure."""


@dataclass(frozen=True)
class Declared:
    """What the headers of an interface declare.

    Attributes:
        headers: ours, by their names, those that others need first.
        face: what has the enumerations and constants.
        offsets: the structures.
        sizes: their sizes.
    """

    headers: Sequence[str]
    face: ModuleType
    offsets: Mapping[str, Members]
    sizes: Mapping[str, int]

    def assertions(self) -> Iterator[str]:
        """Lines of C that do not compile if anything is not as it should be."""
        for structure, members in self.offsets.items():
            yield f'static_assert(sizeof({structure}) == {self.sizes[structure]}, "{structure}");'
            for member, (offset, size) in members.items():
                yield f'static_assert(offsetof({structure}, {member}) == {offset}, "{member}");'
                yield f'static_assert(sizeof((({structure} *)0)->{member}) == {size}, "{member}");'
        for name in self.face.__all__:
            found = getattr(self.face, name)
            if isinstance(found, int):
                yield f'static_assert({name} == {found}, "{name}");'
            elif isinstance(found, type) and issubclass(found, IntEnum):
                for code in found:
                    yield f'static_assert({code.name} == {code.value}, "{code.name}");'
        for name in self.headers:
            for function in Header(FOLDER / name).functions:
                yield _use(function)

    def compile(self, path: Path, language: str, folder: Path) -> None:
        """Compile the assertions against a header."""
        source = folder / "check.c"
        head = ["assert.h", "stdbool.h", "stddef.h"]
        lines = [
            *(f"#include <{name}>" for name in head),
            f'#include "{path}"',
            *self.assertions(),
        ]
        source.write_text("\n".join([*lines, ""]), "utf-8")
        compiler, *own = compiler_of(language)
        command = [
            compiler,
            *own,
            "-Wall",
            "-Wextra",
            "-Werror",
            "-c",
            str(source),
            "-o",
            str(folder / "check.o"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def members(self) -> dict[str, set[str]]:
        """The members of every structure that the headers declare."""
        headers = [Header(FOLDER / name) for name in self.headers]
        ffi = FFI()
        ffi.cdef("\n".join(header.types for header in headers))
        handles = {name for header in headers for name in header.handles}
        types = {*ffi.list_types()[0]} - handles
        return {
            name: set(_members(ffi.typeof(name)))
            for name in types
            if ffi.typeof(name).kind == "struct"
        }


def _use(function: Function) -> str:
    """A line that takes a function with just these parameters and this result."""
    inside = ", ".join(parameter.declaration for parameter in function.parameters)
    return f"{function.result} (*use_{function.name})({inside}) = {function.name};"


def _members(structure: Any) -> Iterator[str]:
    for name, member in structure.fields:
        if name:
            yield name
        else:
            yield from _members(member.type)
