"""Headers read as data, and what they declare."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.apis.c.conftest import LANGUAGES, STRICT, compiler_of

from crosschip.apis.c.header import FOLDER, Function, Header, Parameter
from crosschip.apis.c.libraries import LIBRARIES, Library

TEXT = """
#ifndef A_H
#define A_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
/* A comment; int not_a_function(int x); */
#define A_LIMIT 8
typedef struct A A;
typedef struct B { int32_t data[A_LIMIT]; } B;
typedef void (*A_Done)(int code, void *data);
int A_make(A **a, const B *type,
           int (*callback)(int event, void *data)); /* and after */
void A_nothing(void);
const char *A_name(const A *a, int32_t sizes[2]);
#ifdef __cplusplus
}
#endif
#endif
"""


@pytest.fixture
def header(tmp_path: Path) -> Header:
    path = tmp_path / "a.h"
    path.write_text(TEXT, "utf-8")
    return Header(path)


def test_functions(header: Header) -> None:
    assert header.functions == (
        Function(
            "int",
            "A_make",
            (
                Parameter("A **a", "a"),
                Parameter("const B *type", "type"),
                Parameter("int (*callback)(int event, void *data)", "callback"),
            ),
        ),
        Function("void", "A_nothing", ()),
        Function(
            "const char *",
            "A_name",
            (Parameter("const A *a", "a"), Parameter("int32_t sizes[2]", "sizes")),
        ),
    )


def test_types(header: Header) -> None:
    assert header.handles == ("A",)
    lines = [line for line in header.types.splitlines() if line]
    assert lines == [
        "#define A_LIMIT 8",
        "typedef struct A A;",
        "typedef struct B { int32_t data[A_LIMIT]; } B;",
        "typedef void (*A_Done)(int code, void *data);",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "name", sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.h"))
)
def test_headers_compile_by_themselves(name: str, language: str, tmp_path: Path) -> None:
    compiler, *own = compiler_of(language)
    source = tmp_path / "alone.c"
    source.write_text(f"#include <{name}>\n#include <{name}>\nint main(void) {{ return 0; }}\n")
    command = [
        compiler,
        *own,
        *STRICT,
        f"-I{FOLDER}",
        "-c",
        str(source),
        "-o",
        str(tmp_path / "alone.o"),
    ]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_every_function_has_a_comment(library: Library) -> None:
    text = (FOLDER / library.exported).read_text("utf-8")
    for function in library.header.functions:
        before = text[: text.index(f"{function.name}(")].rpartition("\n")[0]
        assert before.endswith("*/"), function.name
