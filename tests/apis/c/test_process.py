"""Libraries in processes: what they export, how they start Python, and how they live with it."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import sysconfig
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from tests.apis.c.conftest import Program, linked, run

from crosschip.apis.c import bindings, building
from crosschip.apis.c.building import build
from crosschip.apis.c.libraries import LIBRARIES, Library
from crosschip.apis.c.source import exported
from crosschip.ir import Error

PROGRAMS = Path(__file__).with_name("programs")


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_exported_symbols(library: Library, libraries: Path) -> None:
    listed = run("nm", "-D", "--defined-only", libraries / "lib" / library.file)
    symbols = {line.split()[-1] for line in listed.splitlines()}
    assert symbols == {*exported(library)}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_the_python_side_has_every_function_and_no_other(library: Library) -> None:
    module, _, kind = library.bindings.partition(":")
    bindings_class = getattr(import_module(module), kind)
    own = {name for name in vars(bindings_class) if not name.startswith("_")}
    assert own == {function.name for function in library.header.functions}


def test_opened_and_closed_again_and_again(libraries: Path, program: Program) -> None:
    run(program(PROGRAMS / "reload.c", "-ldl"), libraries / "lib" / "libnnadapter.so")


def test_many_threads_make_the_first_call_of_libraries_that_were_moved(
    libraries: Path, program: Program, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(libraries, moved)
    flags = linked(moved, "nnadapter")
    assert str(libraries) not in " ".join(flags)
    run(program(PROGRAMS / "threads.c", "-D_GNU_SOURCE", "-pthread", *flags))


@pytest.mark.parametrize("variables", [{"PYTHONPATH": ""}, {"PATH": ""}], ids=str)
def test_the_installation_is_found(
    libraries: Path, program: Program, variables: dict[str, str]
) -> None:
    flags = ["-D_GNU_SOURCE", "-pthread", *linked(libraries, "nnadapter")]
    run(program(PROGRAMS / "threads.c", *flags), environment=variables)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_the_program_is_left_as_it_was_and_pythons_end_comes_once(
    libraries: Path, program: Program, tmp_path: Path, locale: str
) -> None:
    """Also if a child of the process has ended before."""
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit\natexit.register(lambda: print('ended', flush=True))\n"
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    made = program(PROGRAMS / "exit.c", "-D_GNU_SOURCE", *linked(libraries, "nnadapter"))
    environment = {"PYTHONPATH": path, "LC_ALL": "", "LC_CTYPE": locale}
    assert run(made, environment=environment) == "ended\n"


@pytest.mark.parametrize("device", ["iree", "litert", "onnxruntime", "openvino", "torch", "xla"])
def test_a_program_ends_well_with_each_engine(
    libraries: Path, program: Program, device: str
) -> None:
    """Engines have exit functions of their own, which may read thread-local state."""
    run(program(PROGRAMS / "engine.c", *linked(libraries, "nnadapter")), device)


HOST = """
import ctypes, datetime, logging, sys
datetime.datetime_CAPI.__doc__  # a capsule's type is looked at before the library starts
library = {kind}(sys.argv[1])
library.crosschip_last_error.restype = ctypes.c_char_p
version = ctypes.c_uint32()
assert library.NNAdapter_getVersion(ctypes.byref(version)) == 0
assert version.value == 1
assert library.NNAdapter_getVersion(None) == 3
assert library.crosschip_last_error() == b"NNAdapter_getVersion: version is NULL"
from crosschip.apis.nnadapter import last_error
assert last_error() == "NNAdapter_getVersion: version is NULL"
"""


@pytest.mark.parametrize("kind", ["ctypes.CDLL", "ctypes.PyDLL"])
def test_in_a_process_that_runs_python(libraries: Path, kind: str) -> None:
    """Also when the caller holds on to Python's lock."""
    library = libraries / "lib" / "libnnadapter.so"
    run(sys.executable, "-c", HOST.format(kind=kind), library)


def test_a_program_that_ends_its_own_python(libraries: Path, program: Program) -> None:
    include = f"-isystem{sysconfig.get_path('include')}"
    flags = [include, *building.python_flags(), *linked(libraries, "nnadapter")]
    made = program(PROGRAMS / "host.c", "-Wno-pedantic", *flags)
    home = {"PYTHONHOME": f"{sys.base_prefix}:{sys.base_exec_prefix}"}
    assert run(made, environment=home) == "Python has ended in this process\n"


def test_two_libraries_have_their_handles_in_common(
    libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = replace(LIBRARIES[0], name="twin")
    monkeypatch.setattr(bindings, "LIBRARIES", (*LIBRARIES, twin))
    (built,) = build(tmp_path, [twin])
    first = ctypes.CDLL(str(libraries / "lib" / "libnnadapter.so"))
    second = ctypes.CDLL(str(built.library))
    model = ctypes.c_void_p()
    assert first.NNAdapterModel_create(ctypes.byref(model)) == 0
    second.NNAdapterModel_destroy(model)
    first.crosschip_last_error.restype = ctypes.c_char_p
    assert first.NNAdapterModel_finish(model) == 3
    assert b"(destroyed)" in first.crosschip_last_error()


def test_in_this_very_process(libraries: Path) -> None:
    library = ctypes.CDLL(str(libraries / "lib" / "libnnadapter.so"))
    model = ctypes.c_void_p()
    assert library.NNAdapterModel_create(ctypes.byref(model)) == 0
    library.NNAdapterModel_destroy(model)
    assert library.NNAdapterModel_finish(model) == 3


def test_a_python_that_is_gone(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "venv" / "bin" / "python"
    gone.parent.mkdir(parents=True)
    monkeypatch.setattr(sys, "executable", str(gone))
    build(tmp_path)
    source = tmp_path / "gone.c"
    source.write_text(
        "#include <crosschip.h>\n#include <nnadapter.h>\n#include <stdio.h>\n"
        "int main(void) { NNAdapterModel *model;\n"
        'printf("%d %s", NNAdapterModel_create(&model), crosschip_last_error());\n'
        "NNAdapterModel_destroy(NULL); return 0; }\n"
    )
    printed = run(program(source, *linked(tmp_path, "nnadapter")))
    assert printed == f"5 the Python that this library was built for is gone: {gone}"


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Error, match="no C compiler, cc; install one"):
        build(tmp_path)


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [("INSTSONAME", "libpython3.a", "no shared library"), ("LIBDIR", "/none", "no shared library")],
)
def test_no_library_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, text: str
) -> None:
    real = sysconfig.get_config_var
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: value if name == variable else real(name)
    )
    with pytest.raises(Error, match=text):
        build(tmp_path)


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "source", lambda library: "#error no luck today\n")
    with pytest.raises(Error, match="no luck today"):
        build(tmp_path)


def test_a_library_in_use_is_replaced_not_written_into(tmp_path: Path) -> None:
    made = build(tmp_path)[0].library
    before = made.stat().st_ino
    held = made.open("rb")
    build(tmp_path)
    assert made.stat().st_ino != before
    assert held.read(4) == b"\x7fELF"
    held.close()
    assert not list(made.parent.glob("*.new"))
