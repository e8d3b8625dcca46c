"""Generation of a library's C source from its headers."""

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
"""Adds crosschip and its dependencies to `sys.path`, also in a process with its own Python."""

_CONNECTING_CODE = """
from crosschip.apis.c.bindings import connect
connect(module.ffi, module.lib, {name!r})
"""


def source(library: Library) -> str:
    """Generate a library's C source, for this Python and this crosschip."""
    ffi = FFI()
    ffi.cdef(declarations(library))
    ffi.set_source(library.module, _preamble(library))
    with TemporaryDirectory() as folder:
        file = Path(folder, "source.c")
        with redirect_stdout(StringIO()):  # cffi prints progress
            ffi.emit_c_code(str(file))
        return file.read_text("utf-8")


def declarations(library: Library) -> str:
    """Return cffi's declarations: the headers' types, and the functions implemented in Python.

    Handles are declared as numbers.
    """
    handles = _handles(library)
    lines = [f"    {_declaration(function, handles)};" for function in library.header.functions]
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
    """Return the names of a library's exported functions."""
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
            f"#define CROSSCHIP_INIT_BINDINGS PyInit_{library.module}",
            f"#define CROSSCHIP_PATHS_CODE {_literal(paths)}",
            f"#define CROSSCHIP_CONNECTING_CODE {_literal(connecting)}",
            '#define CROSSCHIP_EXPORTED __attribute__((visibility("default")))',
            Path(__file__).with_name("start.c").read_text("utf-8"),
            *(f"static {_declaration(function, handles)};" for function in functions),
            *(
                line
                for function in functions
                for line in _function_definition(function, handles, library)
            ),
        ]
    )


def _handles(library: Library) -> Sequence[str]:
    return [name for header in library.headers for name in header.handles]


def _declaration(function: Function, handles: Sequence[str]) -> str:
    """Return the declaration of a function's Python implementation."""
    parameters = [
        _handles_as_numbers(parameter.declaration, handles) for parameter in function.parameters
    ]
    result = _handles_as_numbers(function.result, handles)
    return f"{result} {PREFIX}{function.name}({', '.join(parameters) or 'void'})"


def _function_definition(
    function: Function, handles: Sequence[str], library: Library
) -> Iterator[str]:
    """Yield a function's C definition, which starts Python and calls the implementation."""
    parameters = ", ".join(parameter.declaration for parameter in function.parameters)
    arguments = ", ".join(_argument(parameter, handles) for parameter in function.parameters)
    call = f"{PREFIX}{function.name}({arguments})"
    yield f"CROSSCHIP_EXPORTED {function.result} {function.name}({parameters or 'void'})"
    yield "{"
    yield "    if (crosschip_fails())"
    if function.result == "void":
        yield "        return;"
        yield f"    {call};"
    else:
        yield f"        return ({function.result}){library.failures.get(function.result, '0')};"
        yield f"    return ({function.result}){call};"
    yield "}"


def _argument(parameter: Parameter, handles: Sequence[str]) -> str:
    """Return a parameter cast to its type in Python."""
    declaration = _handles_as_numbers(parameter.declaration, handles)
    if declaration == parameter.declaration:
        return parameter.name
    kind = re.sub(rf"\b{parameter.name}(\[\w*\])?$", "", declaration).strip()
    return f"({kind}){parameter.name}"


def _handles_as_numbers(declaration: str, handles: Sequence[str]) -> str:
    """Return a declaration with a number in place of each pointer to an opaque structure."""
    names = "|".join(handles) or "(?!)"
    return re.sub(rf"(?:const )?\b(?:{names}) \*", "uintptr_t ", declaration)


def _literal(text: str) -> str:
    """Return a C string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
