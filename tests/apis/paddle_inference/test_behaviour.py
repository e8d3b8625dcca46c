"""What a program sees is what it sees with Paddle itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent

_RUN = """
import runpy, sys
from crosschip.apis import paddle_inference
paddle_inference.install(sys.argv.pop(1))
sys.argv[0] = "program.py"
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


@pytest.mark.parametrize(("format", "version"), [("pdmodel", "2.6.2"), ("json", "3.3.1")])
@pytest.mark.parametrize("device", ["onnxruntime"])
def test_a_program_sees_what_paddle_shows(
    models: Path, device: str, format: str, version: str
) -> None:
    command = [sys.executable, "-c", _RUN, device, str(HERE / "program.py"), str(models), format]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    found, expected = json.loads(done.stdout), _recorded(version)
    assert list(found) == list(expected)
    wrong = {name for name in expected if not _alike(found[name], expected[name])}
    assert not wrong, {name: (found[name], expected[name]) for name in wrong}


def test_what_paddle_shows_has_results_and_errors() -> None:
    for version in ("2.6.2", "3.3.1"):
        seen = _recorded(version)
        assert 10 < sum(value == "error" for value in seen.values()) < len(seen) / 4
        assert sum(isinstance(value, dict) for value in seen.values()) > 10


def _recorded(version: str) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((HERE / f"recorded-{version}.json").read_text())
    return recorded


def _alike(found: Any, expected: Any) -> bool:
    if not isinstance(expected, dict):
        return bool(found == expected)
    same_type = found["dtype"] == expected["dtype"]
    one, other = np.array(found["elements"]), np.array(expected["elements"])
    return same_type and one.shape == other.shape and bool(np.allclose(one, other, 1e-4, 1e-5))
