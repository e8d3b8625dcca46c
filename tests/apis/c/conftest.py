"""What the tests of C libraries share: the libraries, and programs that are linked with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from crosschip.apis.c.building import build

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "C11, gcc": ("gcc", "-std=c11"),
    "C++17, gcc": ("g++", "-std=c++17", "-x", "c++"),
    "C11, clang": ("clang", "-std=c11"),
    "C++17, clang": ("clang", "-std=c++17", "-x", "c++"),
}
"""Compilers, with the language that they are to keep to."""

Program = Callable[..., Path]


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the libraries have been built into."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler, cc")
    folder = tmp_path_factory.mktemp("libraries")
    build(folder)
    return folder


@pytest.fixture
def program(libraries: Path, tmp_path: Path) -> Program:
    """Compiles a program, as `pkg-config` says, and gives its path."""

    def compiled(source: Path, *flags: str, language: str = "C11, gcc") -> Path:
        compiler, *own = compiler_of(language)
        made = tmp_path / source.stem
        command = [compiler, *own, *STRICT, str(source), "-o", str(made), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return made

    return compiled


def compiler_of(language: str) -> tuple[str, ...]:
    """A compiler, and what makes it keep to a language; the test is skipped if there is none."""
    compiler, *own = LANGUAGES[language]
    if shutil.which(compiler):
        return compiler, *own
    if compiler == "clang" and find_spec("ziglang"):
        # It comes with Clang, and hands on an option of its own that is not used.
        unused = "-Wno-unused-command-line-argument"
        driver = "c++" if "c++" in own else "cc"
        return sys.executable, "-m", "ziglang", driver, *own, unused
    pytest.skip(f"there is no {compiler}")


def linked(libraries: Path, name: str) -> list[str]:
    """What `pkg-config` says to link a library with."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "lib" / "pkgconfig")}
    command = ["pkg-config", "--cflags", "--libs", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def run(*command: object, timeout: float = 60, environment: Mapping[str, str] | None = None) -> str:
    """What a program prints that is to succeed."""
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout
