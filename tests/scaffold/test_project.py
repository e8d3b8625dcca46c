"""Projects that `crosschip new-device` writes, installed and tried as a vendor would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crosschip.ir import InputError
from crosschip.scaffold.project import new_device

EXAMPLE = Path(__file__).parents[2] / "examples" / "native_device"
CHECKED = ("--operator", "RELU", "--operator", "ADD", "--operator", "DEVICE")
TEMPLATES = Path(__file__).parents[2] / "src" / "crosschip" / "scaffold" / "templates"


def ran(arguments: list[str], folder: Path, **environment: str) -> str:
    """What a command prints, which must succeed."""
    done = subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def crosschip(folder: Path, *arguments: str, **environment: str) -> str:
    return ran([sys.executable, "-m", "crosschip", *arguments], folder, **environment)


def check(folder: Path, name: str, *which: str, **environment: str) -> None:
    """Have the device listed, run its own test, and pass the kit's quick cases, or some of them."""
    listed = json.loads(crosschip(folder, "devices", "--json", **environment))
    assert next(d for d in listed if d["name"] == name)["available"]
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "elsewhere"]
    assert "1 passed" in ran(tests, folder, **environment)
    arguments = ["conformance", name, "--quick", "--json", *which]
    report = json.loads(crosschip(folder, *arguments, **environment))
    assert report["fail"] == report["not_run"] == 0
    assert report["pass"] > 0


def test_a_project_in_python(tmp_path: Path) -> None:
    printed = crosschip(tmp_path, "new-device", "acme_npu")
    assert "next: pip install -e acme_npu && crosschip conformance acme_npu --quick" in printed
    project = tmp_path / "acme_npu"
    (source,) = project.glob("src/**/*.py")
    assert len(source.read_text("utf-8").splitlines()) < 100
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    site = str(tmp_path / "site")
    ran([sys.executable, *install, "--target", site, "."], project)
    path = os.pathsep.join(filter(None, (site, os.environ.get("PYTHONPATH"))))
    check(project, "acme_npu", *CHECKED, PYTHONPATH=path)


def test_a_project_in_c(tmp_path: Path) -> None:
    project = tmp_path / "acme_npu"
    files = json.loads(crosschip(tmp_path, "new-device", "acme_npu", "--native", "--json"))["files"]
    assert str(Path("acme_npu", "src", "driver.c")) in files
    ran(["make", f"PYTHON={sys.executable}"], project)
    check(project, "acme_npu", *CHECKED, CROSSCHIP_DEVICE_PATH=str(project))


def test_the_driver_is_that_of_the_example() -> None:
    template = TEMPLATES / "native" / "src" / "driver.c"
    assert template.read_text("utf-8") == (EXAMPLE / "driver.c").read_text("utf-8")


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", ["os", "numpy", "crosschip", "asyncio", "reference", "openvino"])
def test_names_that_something_has_already(name: str, native: bool, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"^'{name}' is the name of a Pyth|a device '{name}' alr"):
        new_device(name, tmp_path, native=native)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["Acme", "acme-npu", "1st", "", "a__b", "class", "../x", "x" * 51])
def test_names_that_no_device_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be the name of a device"):
        new_device(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    new_device("acme", tmp_path)
    with pytest.raises(InputError, match="is there already"):
        new_device("acme", tmp_path, native=True)


def test_nothing_of_the_template_is_left(tmp_path: Path) -> None:
    for native in (False, True):
        for path in new_device("acme_npu", tmp_path / str(native), native=native):
            told = path.name + path.read_text("utf-8")
            assert not any(word in told for word in ("my_npu", "my-npu", "MyNpu")), path
