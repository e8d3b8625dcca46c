"""The whole program in C of docs/nnadapter.md: compiled as it stands there, and run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.apis.c.conftest import LANGUAGES, Program, linked, run

DOCUMENT = Path(__file__).parents[3] / "docs" / "nnadapter.md"
MEMCHECK = (
    *("valgrind", "--error-exitcode=9", "--quiet", "--leak-check=no", "--undef-value-errors=no"),
    f"--suppressions={Path(__file__).with_name('valgrind.supp')}",
)


def block(language: str) -> str:
    """The one block of the document in a language."""
    text = DOCUMENT.read_text("utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "document.c"
    path.write_text(block("c"), "utf-8")
    return path


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_compiles_and_prints_what_it_says(
    source: Path, libraries: Path, program: Program, language: str
) -> None:
    made = program(source, *linked(libraries, "nnadapter"), language=language)
    assert run(made) == block("text")


@pytest.mark.slow
def test_it_reads_and_writes_no_memory_but_its_own(
    source: Path, libraries: Path, program: Program
) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind")
    made = program(source, "-g", *linked(libraries, "nnadapter"))
    plainly = {"PYTHONMALLOC": "malloc"}
    assert run(*MEMCHECK, made, timeout=300, environment=plainly) == block("text")
