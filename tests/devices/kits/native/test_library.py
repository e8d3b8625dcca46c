"""Libraries that are no drivers or break the contract are refused with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.devices.kits.native.conftest import STRICT, Build

from crosschip.devices.kits.native import PATH_VARIABLE, device_of, libraries
from crosschip.devices.kits.native.header import HEADER
from crosschip.devices.kits.native.interface import codes, enumerators, foreign
from crosschip.ir import DeviceError, ElementType, InputError
from crosschip.runtime.discovery import list_devices, open_device

WRONG = [
    (".contract = 7", "made for version 7 of the driver contract; this is version 1"),
    (".size = 8", "too few to hold what is required"),
    (".vendor = 0", "has no vendor; set it"),
    (".version = 0", "has no version; set it"),
    (".execute_program = 0", "has no execute_program; set it"),
    (".validate_program = 0", "has no validate_program; set it"),
    (".load_program = 0", "has no load_program, but save_program; set all of them or none"),
    (".read_memory = 0", "has no read_memory, but allocate_memory; set all of them or none"),
    (".type = 3", "has the type 3; use 0 to 2"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[change for change, _ in WRONG])
def test_what_does_not_keep_the_contract(build: Build, changes: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        device_of(build(changes))()


def test_no_library(tmp_path: Path, build: Build) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("no library")
    with pytest.raises(DeviceError, match=r"libtext\.so: cannot be loaded: "):
        device_of(text)()
    with pytest.raises(DeviceError, match="does not export __nnadapter_device__other"):
        device_of(build(name="other"))()


def test_what_a_device_does_not_have_has_a_default(build: Build) -> None:
    """An older library, whose structure ends after the required functions."""
    old = build(".size = offsetof(crosschip_device, last_error)")
    with device_of(old)() as device:
        assert device.capabilities().max_rank is None
        assert device.capabilities().alignment == 1


def test_a_device_is_opened_once_and_closed_by_its_last_user(build: Build) -> None:
    """The twin refuses to be opened twice."""
    found = device_of(build())
    with found() as first, found():
        assert first.vendor == "Gemini"
    with found():
        pass


def test_found_in_folders(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build('.name = "twin"')
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv(PATH_VARIABLE, f"{tmp_path}:{other}:{tmp_path}")
    assert libraries() == {"twin": [library]}
    report = next(report for report in list_devices() if report.name == "twin")
    assert (report.vendor, report.kind, report.version) == ("Gemini", "gpu", "2.5")
    assert report.simulated
    assert report.available
    (other / "libtwin.so").write_bytes(library.read_bytes())
    with pytest.raises(DeviceError, match=f"from the library {library} and the library {other}"):
        open_device("twin")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=f"{PATH_VARIABLE} names .*nowhere.*, which is no folder"):
        libraries()


def test_a_broken_library_is_a_line_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libbroken.so").write_text("no library")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    report = next(report for report in list_devices() if report.name == "broken")
    assert not report.available
    assert "cannot be loaded" in report.reason


def test_nothing_is_loaded_where_there_is_none() -> None:
    code = "import crosschip, sys; crosschip.list_devices; print('cffi' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.mark.parametrize(("compiler", "language"), [("cc", "c11"), ("c++", "c++17")])
def test_the_header_compiles(tmp_path: Path, compiler: str, language: str) -> None:
    source = tmp_path / ("user.c" if language == "c11" else "user.cc")
    source.write_text(
        '#include "crosschip_hal.h"\n'
        "const crosschip_operand *first(const crosschip_model *model)\n"
        '{ return crosschip_input(model, crosschip_operation_at(model, 0), "input"); }\n'
    )
    flags = (f"-std={language}", *STRICT, f"-I{HEADER.parent}", "-c", "-o", tmp_path / "user.o")
    subprocess.run([compiler, *flags, source], check=True)


def test_structures_are_what_compilers_make_of_them(tmp_path: Path) -> None:
    """Sizes and offsets by cffi, against the compiler's."""
    ffi = foreign()
    names = [name for name in ffi.list_types()[0] if ffi.typeof(name).kind == "struct"]
    wanted = {
        f"{name}.{field}": ffi.offsetof(name, field)
        for name in names
        for field, _ in ffi.typeof(name).fields
    } | {name: ffi.sizeof(name) for name in names}
    lines = [
        f'printf("  \\"%s\\": %zu,\\n", "{key}", '
        + (f"offsetof({key.replace('.', ', ')})" if "." in key else f"sizeof({key})")
        + ");"
        for key in wanted
    ]
    source, program = tmp_path / "sizes.c", tmp_path / "sizes"
    body = "\n".join(lines)
    source.write_text(
        f'#include "crosschip_hal.h"\n#include <stdio.h>\nint main(void) {{ printf("{{\\n");\n'
        f'{body}\nprintf("  \\"end\\": 0 }}"); return 0; }}\n'
    )
    subprocess.run(["cc", f"-I{HEADER.parent}", source, "-o", program], check=True)
    found = json.loads(subprocess.run([program], capture_output=True, check=True).stdout)
    assert found == {**wanted, "end": 0}


def test_codes_are_those_of_the_project() -> None:
    assert all(code == element_type.code for element_type, code in codes(ElementType).items())
    assert len(codes(ElementType)) == len(enumerators("crosschip_type"))
