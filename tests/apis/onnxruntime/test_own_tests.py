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
    "python_symlink_data",
    *(["float8"] if find_spec("parameterized") else []),
)
"""The files about processors, after `onnxruntime_test_`; older versions lack some."""

_CONCERNED = "not cast_reference and not qdq_reference"
"""Leaves out the tests of floats of 8 bits that run the onnx package's evaluator alone."""


@pytest.mark.skipif(not _SOURCE, reason="ONNXRUNTIME_SOURCE names no checkout of ONNX Runtime")
def test_they_pass(tmp_path: Path) -> None:
    tests = Path(_SOURCE) / "onnxruntime" / "test"
    names = [f"onnxruntime_test_{suffix}.py" for suffix in _SUFFIXES]
    files = [path for name in names if (path := tests / "python" / name).exists()]
    for path in files:
        shutil.copy(path, tmp_path)
    shutil.copy(tests / "python" / "helper.py", tmp_path)
    (tmp_path / "testdata").symlink_to(tests / "testdata")
    folders = [str(_OWN), *filter(None, sys.path)]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.",
         "-p", "crosschip_in_place", "-k", _CONCERNED, *(path.name for path in files)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    print(result.stdout[-4000:], result.stderr[-2000:])
    failed = set(
        re.findall(r"^(?:FAILED|ERROR|SUBFAILED\(.*\)) (\S+)", result.stdout, re.MULTILINE)
    )
    judged = json.loads((_OWN / "failures.json").read_text(encoding="utf-8"))
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (passed|failed)", result.stdout)}
    assert failed <= set(judged)
    assert counts["passed"] >= 0.9 * sum(counts.values())
