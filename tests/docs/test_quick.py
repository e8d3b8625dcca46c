"""`make quick` needs neither engines nor models: without both, its tests are found."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_quick_tests_ask_no_engine() -> None:
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", "0"]
    command = [*pytest, "--quick", "--collect-only", "tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = done.stdout
    assert "tests/ops/standard/test_activation.py::" in found
    for left in ("[openvino", "[onnxruntime", "tests/devices/", "tests/importers/"):
        assert left not in found
