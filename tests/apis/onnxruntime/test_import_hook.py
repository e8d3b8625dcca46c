"""`install` gives programs crosschip in place of ONNX Runtime."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.apis.onnxruntime.models import SUM, model

_PROGRAM = """
import numpy as np
import onnxruntime
import onnxruntime as ort
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
import onnxruntime.capi.onnxruntime_pybind11_state
import importlib.metadata

options = SessionOptions()
options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
session = InferenceSession("model.onnx", options, providers=ort.get_available_providers())
x = np.ones((2, 3), np.float32)
print(session.run(None, {"x": x, "y": x})[0].sum(), type(session).__module__)
try:
    session.run(None, {"x": x.astype(np.int64), "y": x})
except InvalidArgument:
    print("refused")
print(importlib.metadata.version("onnxruntime") >= "1.26", hasattr(ort, "__version__"))
"""

_FACE = "from crosschip.apis import onnxruntime; onnxruntime.install({})\n"


@pytest.mark.parametrize("devices", ["", "'auto'", "['openvino']", "['reference']"])
def test_a_program_runs_as_it_is(devices: str, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(model(SUM))
    output = _run(_FACE.format(devices) + _PROGRAM, tmp_path)
    assert output.splitlines() == [
        "12.0 crosschip.apis.onnxruntime.session", "refused", "True True",
    ]  # fmt: skip
    assert _run(_PROGRAM, tmp_path).startswith("12.0 onnxruntime.")


def test_tools_of_onnxruntime_run_on_it(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(model(SUM))
    program = """
import onnxruntime.backend as backend, onnx, numpy as np
model = backend.prepare(onnx.load("model.onnx"), "CPU")
print(model.run([np.ones((2, 3), np.float32)] * 2)[0].sum(), type(model._session).__module__)
"""
    output = _run(_FACE.format("") + program, tmp_path)
    assert output.strip() == "12.0 crosschip.apis.onnxruntime.session"


def test_it_comes_before_the_program_imports_onnxruntime(tmp_path: Path) -> None:
    result = _process("import onnxruntime\n" + _FACE.format(""), tmp_path)
    assert result.returncode == 1
    assert "call install() before that" in result.stderr


def test_it_may_come_after_crosschip_has_used_the_engine(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(model(SUM))
    before = "import crosschip; crosschip.compile('model.onnx', ['onnxruntime'])\n"
    assert _run(before + _FACE.format("") + _PROGRAM, tmp_path).startswith("12.0 crosschip")


def _run(program: str, folder: Path) -> str:
    result = _process(program, folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def _process(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=folder, capture_output=True, text=True
    )
