"""C libraries compiled, with what programs need to be linked against them."""

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
        headers: what programs include.
        description: what `pkg-config` reads.
    """

    library: Path
    headers: Sequence[Path]
    description: Path


def build(folder: Path, libraries: Sequence[Library] = LIBRARIES) -> list[Built]:
    """Compile libraries for this Python, with its crosschip.

    Args:
        folder: where `lib`, `lib/pkgconfig` and `include` are made.
        libraries: which.

    Raises:
        Error: there is no C compiler, or no Python that can be linked against; or it fails.
    """
    compiler = _compiler()
    folder = folder.absolute()
    for part in ("lib/pkgconfig", "include"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    return [_built(compiler, library, folder) for library in libraries]


def _built(compiler: str, library: Library, folder: Path) -> Built:
    target = folder / "lib" / library.file
    with TemporaryDirectory() as scratch:
        code, names = Path(scratch, "source.c"), Path(scratch, "exported.map")
        code.write_text(source(library), "utf-8")
        names.write_text(f"{{ global: {'; '.join(exported(library))}; local: *; }};\n", "utf-8")
        # A file that a program has open is not written into, but replaced.
        new = target.with_suffix(".new")
        _run([compiler, *_flags(library, names), "-o", str(new), str(code), *python_flags()])
        new.replace(target)
    wanted = (*library.included, library.exported, "crosschip.h")
    headers = [_copied(name, folder / "include") for name in wanted]
    description = folder / "lib" / "pkgconfig" / f"{library.name}.pc"
    description.write_text(_description(library), "utf-8")
    return Built(target, headers, description)


def _copied(header: str, folder: Path) -> Path:
    place = folder / header
    place.parent.mkdir(exist_ok=True)
    return Path(shutil.copy(FOLDER / header, place))


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
        # Python cannot be unloaded, so nor can what has started it.
        *(f"-Wl,-soname,{library.file}", f"-Wl,--version-script={names}", "-Wl,-z,nodelete"),
        "-Wl,-z,defs",
    ]


def python_flags() -> list[str]:
    """What links against the library of this Python.

    Raises:
        Error: it has none that is shared.
    """
    folder = Path(sysconfig.get_config_var("LIBDIR") or "")
    name = sysconfig.get_config_var("INSTSONAME") or ""
    for place in (folder, folder / (sysconfig.get_config_var("MULTIARCH") or "")):
        if ".so" in name and (place / name).is_file():
            return [f"-L{place}", f"-Wl,-rpath,{place}", f"-l:{name}", "-ldl"]
    raise Error(
        f"{sys.executable} has no shared library to be linked against; use a Python that was "
        "built with --enable-shared, as those of Linux distributions are"
    )


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Error(f"{command[0]} fails: {done.stderr.strip()}")


def _description(library: Library) -> str:
    """The text that `pkg-config` reads; it finds the other files from where it is.

    So libraries may be moved. The folder is as absolute as the path by which `pkg-config` finds it.
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
