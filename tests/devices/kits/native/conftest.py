"""Fixtures for devices written in C: compilers and libraries."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crosschip.devices.kits.native.header import HEADER

Build = Callable[..., Path]

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")


def compiled(source: Path, output: Path, *flags: str) -> Path:
    """Compile a C file to a shared library."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler, cc")
    command = [compiler, "-std=c11", *STRICT, "-fPIC", "-shared", "-pthread", f"-I{HEADER.parent}"]
    subprocess.run([*command, *flags, "-o", output, source], check=True, capture_output=True)
    return output


@pytest.fixture(scope="session")
def twin_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library of the device that exists in C and in Python."""
    folder = tmp_path_factory.mktemp("twin")
    return compiled(Path(__file__).with_name("twin.c"), folder / "libtwin.so")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return a function that compiles the twin with definitions, as `-DCHANGES=".size = 8,"`."""

    def make(changes: str = "", name: str = "twin", flags: Sequence[str] = ()) -> Path:
        defined = [f"-DCHANGES={changes}"] if changes else []
        # To say something twice is what these tests are about.
        own = ["-Wno-override-init", "-Wno-unused-function", *defined, *flags]
        return compiled(Path(__file__).with_name("twin.c"), tmp_path / f"lib{name}.so", *own)

    return make
