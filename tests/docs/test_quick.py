"""What `make quick` runs: tests of every package, on the engines that are installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def collected(**environment: str) -> str:
    """The tests that `--quick` finds."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "--quick",
        "--collect-only",
        "tests",
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_quick_tests_are_of_every_package() -> None:
    tests = collected()
    for folder in ("apis", "cli", "devices", "drivers", "hal", "importers", "ops", "runtime"):
        assert f"tests/{folder}/" in tests
    for engine in ("onnxruntime", "openvino"):
        assert re.search(rf"^tests/devices/.*\[{engine}", tests, re.MULTILINE)


@pytest.mark.nightly
def test_without_engines_quick_tests_are_those_that_need_none() -> None:
    folder = str(ROOT / "tests" / "without_engines")
    path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    tests = collected(PYTHONPATH=path)
    assert "tests/ops/standard/test_activation.py::" in tests
    for left in ("[openvino", "[onnxruntime", "tests/devices/", "tests/importers/"):
        assert left not in tests
