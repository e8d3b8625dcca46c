"""The C source of a library, written from its headers."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from cffi import FFI

import crosschip
from crosschip.apis.c.header import Function, Parameter
from crosschip.apis.c.libraries import PREFIX, Library

_PATHS_CODE = """
import site, sys
if {folder!r} not in sys.path:
    sys.path.insert(0, {folder!r})
for folder in {packages!r}:
    if folder not in sys.path:
        site.addsitedir(folder)
"""
"""Finds crosschip and what it needs, also in a process that runs its own Python."""

_CONNECTING_CODE = """
from crosschip.apis.c.side import connect
connect(module.ffi, module.lib, {name!r})
"""


def source(library: Library) -> str:
    """The C source of a library, for this Python and this crosschip."""
    ffi = FFI()
    ffi.cdef(declarations(library))
    ffi.set_source(library.module, _preamble(library))
    with TemporaryDirectory() as folder:
        written = Path(folder, "source.c")
        with redirect_stdout(StringIO()):  # it says what it does
            ffi.emit_c_code(str(written))
        return written.read_text("utf-8")


def declarations(library: Library) -> str:
    """What the Python side sees: the headers' types, and the functions that it implements.

    A handle is a number there, which names what it stands for.
    """
    handles = _handles(library)
    lines = [f"    {_side(function, handles)};" for function in library.header.functions]
    return "\n".join(
        [
            *(header.types for header in library.headers),
            "void crosschip_end_before(void);",
            'extern "Python" {',
            *lines,
            f"    const char *{PREFIX}last_error(void);",
            "}",
        ]
    )


def exported(library: Library) -> Sequence[str]:
    """The names of the functions that a library exports."""
    return [*(function.name for function in library.header.functions), "crosschip_last_error"]


def _preamble(library: Library) -> str:
    handles = _handles(library)
    functions = library.header.functions
    folder = str(Path(crosschip.__file__).resolve().parents[1])
    packages = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    paths = _PATHS_CODE.format(folder=folder, packages=packages)
    connecting = _CONNECTING_CODE.format(name=library.name)
    names = [*library.included, library.exported, "crosschip.h"]
    return "\n".join(
        [
            *(f'#include "{name}"' for name in names),
            f"#define CROSSCHIP_PYTHON {_literal(sys.executable)}",
            f"#define CROSSCHIP_SIDE PyInit_{library.module}",
            f"#define CROSSCHIP_PATHS_CODE {_literal(paths)}",
            f"#define CROSSCHIP_CONNECTING_CODE {_literal(connecting)}",
            '#define CROSSCHIP_EXPORTED __attribute__((visibility("default")))',
            Path(__file__).with_name("start.c").read_text("utf-8"),
            *(f"static {_side(function, handles)};" for function in functions),
            *(
                line
                for function in functions
                for line in _function_definition(function, handles, library)
            ),
        ]
    )


def _handles(library: Library) -> Sequence[str]:
    return [name for header in library.headers for name in header.handles]


def _side(function: Function, handles: Sequence[str]) -> str:
    """The declaration of a function's Python side."""
    inside = [_numbered(parameter.declaration, handles) for parameter in function.parameters]
    result = _numbered(function.result, handles)
    return f"{result} {PREFIX}{function.name}({', '.join(inside) or 'void'})"


def _function_definition(
    function: Function, handles: Sequence[str], library: Library
) -> Iterator[str]:
    """The definition of a function: it starts Python, and hands over."""
    inside = ", ".join(parameter.declaration for parameter in function.parameters)
    passed = ", ".join(_passed(parameter, handles) for parameter in function.parameters)
    call = f"{PREFIX}{function.name}({passed})"
    yield f"CROSSCHIP_EXPORTED {function.result} {function.name}({inside or 'void'})"
    yield "{"
    yield "    if (crosschip_fails())"
    if function.result == "void":
        yield "        return;"
        yield f"    {call};"
    else:
        yield f"        return ({function.result}){library.failures.get(function.result, '0')};"
        yield f"    return ({function.result}){call};"
    yield "}"


def _passed(parameter: Parameter, handles: Sequence[str]) -> str:
    """A parameter as its Python side takes it."""
    numbered = _numbered(parameter.declaration, handles)
    if numbered == parameter.declaration:
        return parameter.name
    kind = re.sub(rf"\b{parameter.name}(\[\w*\])?$", "", numbered).strip()
    return f"({kind}){parameter.name}"


def _numbered(declaration: str, handles: Sequence[str]) -> str:
    """A declaration with a number in place of each pointer to what no one sees."""
    names = "|".join(handles) or "(?!)"
    return re.sub(rf"(?:const )?\b(?:{names}) \*", "uintptr_t ", declaration)


def _literal(text: str) -> str:
    """A string of C."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
