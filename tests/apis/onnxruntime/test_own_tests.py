"""ONNX Runtime's own tests of its Python interface pass, except for those in `own/failures.json`.

They are brought in when they are run: `ONNXRUNTIME_SOURCE` is the path of a checkout of ONNX
Runtime's sources, of which `onnxruntime/test` is needed. The tests of floats of 8 bits need the
package parameterized.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

_OWN = Path(__file__).parent / "own"
_SOURCE = os.environ.get("ONNXRUNTIME_SOURCE", "")
_SUFFIXES = (
    "python",
    "python_backend",
    "python_backend_mlops",
    "python_iobinding",
    "python_mlops",
    "python_nested_control_flow_op",
    "python_sparse_matmul",
    *(["float8"] if find_spec("parameterized") else []),
)
"""The files about processors, after `onnxruntime_test_`."""


@pytest.mark.skipif(not _SOURCE, reason="ONNXRUNTIME_SOURCE names no checkout of ONNX Runtime")
def test_they_pass(tmp_path: Path) -> None:
    tests = Path(_SOURCE) / "onnxruntime" / "test"
    for suffix in _SUFFIXES:
        shutil.copy(tests / "python" / f"onnxruntime_test_{suffix}.py", tmp_path)
    shutil.copy(tests / "python" / "helper.py", tmp_path)
    (tmp_path / "testdata").symlink_to(tests / "testdata")
    path = [str(_OWN), *filter(None, sys.path)]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.",
         "-p", "crosschip_in_place", *(f"onnxruntime_test_{s}.py" for s in _SUFFIXES)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    print(result.stdout[-4000:], result.stderr[-2000:])
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", result.stdout, re.MULTILINE))
    judged = json.loads((_OWN / "failures.json").read_text(encoding="utf-8"))
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (passed|failed)", result.stdout)}
    assert failed <= set(judged)
    assert counts["passed"] >= 0.9 * sum(counts.values())
