"""Compilation of the C libraries, with their headers and pkg-config files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import crosschip
from crosschip.apis.c.header import FOLDER
from crosschip.apis.c.libraries import LIBRARIES, Library
from crosschip.apis.c.source import exported, source
from crosschip.ir import Error


class Built(NamedTuple):
    """The files of a library.

    Attributes:
        library: the shared library.
        headers: the headers that programs include.
        description: the pkg-config file.
    """

    library: Path
    headers: Sequence[Path]
    description: Path


def build(folder: Path, libraries: Sequence[Library] = LIBRARIES) -> list[Built]:
    """Compile libraries for this Python, with its crosschip.

    Args:
        folder: where `lib`, `lib/pkgconfig` and `include` are created.
        libraries: the libraries to compile.

    Raises:
        Error: there is no C compiler, or no shared libpython; or compilation fails.
    """
    compiler = _compiler()
    folder = folder.absolute()
    for part in ("lib/pkgconfig", "include"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    return [_build_library(compiler, library, folder) for library in libraries]


def _build_library(compiler: str, library: Library, folder: Path) -> Built:
    target = folder / "lib" / library.file
    with TemporaryDirectory() as scratch:
        code, names = Path(scratch, "source.c"), Path(scratch, "exported.map")
        code.write_text(source(library), "utf-8")
        names.write_text(f"{{ global: {'; '.join(exported(library))}; local: *; }};\n", "utf-8")
        # Replace the file: a program may have loaded the old one.
        new = target.with_suffix(".new")
        command = [compiler, *_flags(library, names), "-o", str(new), str(code), *python_flags()]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise Error(f"{compiler} fails: {result.stderr.strip()}")
        new.replace(target)
    names_of_headers = (*library.included, library.exported, "crosschip.h")
    headers = [_copy_header(name, folder / "include") for name in names_of_headers]
    description = folder / "lib" / "pkgconfig" / f"{library.name}.pc"
    description.write_text(_description(library), "utf-8")
    return Built(target, headers, description)


def _copy_header(header: str, folder: Path) -> Path:
    target = folder / header
    target.parent.mkdir(exist_ok=True)
    return Path(shutil.copy(FOLDER / header, target))


def _compiler() -> str:
    if sys.platform != "linux":
        raise Error(f"the C libraries are built on Linux; this is {sys.platform}")
    compiler = shutil.which("cc")
    if compiler is None:
        raise Error("there is no C compiler, cc; install one, as with apt install gcc")
    return compiler


def _flags(library: Library, names: Path) -> list[str]:
    include = sysconfig.get_paths()["include"]
    if not Path(include, "Python.h").is_file():
        raise Error(
            f"there is no {include}/Python.h, which the C libraries are compiled with; install "
            "Python's headers, as with apt install python3-dev"
        )
    return [
        *("-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"),
        *("-D_GNU_SOURCE", "-D_CFFI_NO_LIMITED_API", f"-I{FOLDER}", f"-I{include}"),
        # Python cannot be unloaded, so a library that started it must not be, either.
        *(f"-Wl,-soname,{library.file}", f"-Wl,--version-script={names}", "-Wl,-z,nodelete"),
        "-Wl,-z,defs",
    ]


def python_flags() -> list[str]:
    """Return the linker flags for this Python's library.

    Raises:
        Error: this Python has no shared library.
    """
    folder = Path(sysconfig.get_config_var("LIBDIR") or "")
    name = sysconfig.get_config_var("INSTSONAME") or ""
    for directory in (folder, folder / (sysconfig.get_config_var("MULTIARCH") or "")):
        if ".so" in name and (directory / name).is_file():
            return [f"-L{directory}", f"-Wl,-rpath,{directory}", f"-l:{name}", "-ldl"]
    raise Error(
        f"{sys.executable} has no shared library to be linked against; use a Python that was "
        "built with --enable-shared, as those of Linux distributions are"
    )


def _description(library: Library) -> str:
    """Return the text of a pkg-config file.

    Its paths are relative to the file, so that an installation can be moved.
    """
    return "\n".join(
        [
            "prefix=${pcfiledir}/../..",
            "libdir=${prefix}/lib",
            "includedir=${prefix}/include",
            "",
            f"Name: {library.name}",
            f"Description: {library.summary}, on crosschip",
            f"Version: {crosschip.__version__}",
            f"Requires: {' '.join(library.required)}",
            f"Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -l{library.name}",
            "Cflags: -I${includedir}",
            "",
        ]
    )
