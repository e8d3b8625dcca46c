"""The whole programs in C of the interfaces' pages: compiled as they stand there, and run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.apis.c.conftest import LANGUAGES, Program, linked, run
from tests.lanes import first_or_nightly

DOCUMENTS = Path(__file__).parents[3] / "docs"
LIBRARY = {"nnadapter": "nnadapter", "nnrt": "neural_network_runtime"}
"""What programs are linked with, by the name of their page."""

MEMCHECK = (
    *("valgrind", "--error-exitcode=9", "--quiet", "--leak-check=no", "--undef-value-errors=no"),
    f"--suppressions={Path(__file__).with_name('valgrind.supp')}",
)


def block(page: str, language: str) -> str:
    """The one block of a page in a language."""
    text = (DOCUMENTS / f"{page}.md").read_text("utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture(params=LIBRARY)
def page(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def source(tmp_path: Path, page: str) -> Path:
    path = tmp_path / f"{page}.c"
    path.write_text(block(page, "c"), "utf-8")
    return path


@pytest.mark.parametrize("language", first_or_nightly(LANGUAGES, 3))
def test_it_compiles_and_prints_what_it_says(
    page: str, source: Path, libraries: Path, program: Program, language: str
) -> None:
    made = program(source, *linked(libraries, LIBRARY[page]), language=language)
    assert run(made) == block(page, "text")


@pytest.mark.slow
@pytest.mark.parametrize("page", first_or_nightly(LIBRARY), indirect=True)
def test_it_reads_and_writes_no_memory_but_its_own(
    page: str, source: Path, libraries: Path, program: Program
) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind")
    made = program(source, "-g", *linked(libraries, LIBRARY[page]))
    plainly = {"PYTHONMALLOC": "malloc"}
    assert run(*MEMCHECK, made, timeout=300, environment=plainly) == block(page, "text")
