"""The command line as a process: streams, exit statuses, encodings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crosschip import __version__ as crosschip_version

SCRIPT = Path(sys.executable).with_name("crosschip")
RUN = ("--devices", "reference", "--no-cache", "--shape", "image=1x3x4x8")


def crosschip(*arguments: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [SCRIPT, *map(str, arguments)], env={**os.environ, **environment}, capture_output=True
    )


def test_a_document_is_all_that_is_on_standard_output(model: Path) -> None:
    done = crosschip("run", model, *RUN, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["outputs"][0]["name"] == "[bold]概率"


def test_an_error_is_a_line_and_status_1(model: Path) -> None:
    done = crosschip("run", model, *RUN, "--devices", "nosuch")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"error: there is no device 'nosuch'")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("crosschip expl", "explain"),
        ("crosschip run --prec", "--precision"),
        ("crosschip run --devices onnx", "onnxruntime"),
        ("crosschip run --devices openvino,ref", "openvino,reference"),
        ("crosschip run --performance ext", "extreme"),
        ("crosschip ops CONV_2D_T", "CONV_2D_TRANSPOSE"),
    ],
)
def test_the_shell_completes(typed: str, completed: str) -> None:
    count = len(typed.split()) - 1
    done = crosschip(_CROSSCHIP_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(count))
    assert done.stdout.decode().split() == [completed]


def test_wrong_usage_is_status_2() -> None:
    done = crosschip("run")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Usage: crosschip run" in done.stderr
    assert crosschip().returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_another_encoding_gets_its_document(model: Path, encoding: str) -> None:
    done = crosschip("run", model, *RUN, "--json", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["outputs"][0]["name"] == "[bold]概率"


def test_the_version_asks_for_nothing_else() -> None:
    code = (
        "import sys; from crosschip.cli import run; run(['--version']); "
        "print(*sorted(m for m in sys.modules if m in ('numpy', 'onnx', 'rich', 'crosschip.ir')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().split() == ["crosschip", crosschip_version]


def test_every_encoding_gets_its_tables(model: Path) -> None:
    done = crosschip("run", model, *RUN, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert b"Error" not in done.stderr  # where there may be a line about what takes long
    assert b"[bold]\\u6982\\u7387" in done.stdout


@pytest.mark.slow
def test_long_lines_are_whole_in_a_pipe() -> None:
    done = crosschip("devices", COLUMNS="40")
    devices, properties = done.stdout.decode("ascii").split("\n\nProperties, for --property\n")
    head, *rows = devices.splitlines()[1:]
    assert head.split() == ["name", "vendor", "kind", "version", "available"]
    column = head.index("available")
    names = [row.split()[0] for row in rows if row]
    assert names == sorted(names)
    assert all(row[column:].strip() for row in rows if row)
    assert "\nonnxruntime.spinning  1: idle threads wait for work in a loop" in properties
