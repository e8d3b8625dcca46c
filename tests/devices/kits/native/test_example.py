"""The example device written in C: built like a user's, checked by the conformance kit, and run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.lanes import share

import crosschip
from crosschip.conformance import all_cases, random_cases, run_cases
from crosschip.conformance.judge import Verdict
from crosschip.devices.kits.native import PATH_VARIABLE
from crosschip.devices.kits.native.header import HEADER

ROOT = Path(__file__).parents[4]
OPERATORS = (
    *("ABS", "RELU", "RELU6", "LEAKY_RELU", "SIGMOID", "TANH", "ADD", "SUB", "MUL", "DIV"),
    *("CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "SOFTMAX", "BATCH_NORMALIZATION"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built example."""
    made = tmp_path_factory.mktemp("example") / "native_device"
    built = shutil.ignore_patterns("*.so")
    shutil.copytree(ROOT / "examples" / "native_device", made, ignore=built)
    subprocess.run(["make", f"PYTHON={sys.executable}"], cwd=made, check=True, capture_output=True)
    return made


@pytest.fixture(autouse=True)
def found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(folder))


@pytest.mark.parametrize("operator", [*OPERATORS, "DEVICE"])
def test_the_kit(operator: str, pytestconfig: pytest.Config) -> None:
    """A sixth of the cases, and random ones; nightly, all cases."""
    cases = list(all_cases(operator))
    if operator != "DEVICE":
        cases = [*share(cases, pytestconfig, 6), *random_cases(20, 1, operator)]
    report = run_cases("tinychip", cases)
    verdicts = Counter(entry.verdict for entry in report.entries)
    assert not verdicts[Verdict.FAIL], [e for e in report.entries if e.verdict is Verdict.FAIL]
    assert verdicts[Verdict.PASS] > 5


def test_mobilenet_together_with_another_device() -> None:
    model = crosschip.load(ROOT / "build" / "models" / "onnx" / "mobilenet_v1.onnx")
    image = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    shapes = dict.fromkeys(model.inputs, image.shape)
    with (
        crosschip.compile(model, ["tinychip", "onnxruntime"], shapes=shapes, cache=False) as mixed,
        crosschip.compile(model, ["onnxruntime"], shapes=shapes, cache=False) as alone,
    ):
        runs = Counter(decision.device for decision in mixed.placement.decisions)
        assert runs["tinychip"] > 50
        assert runs["onnxruntime"]
        made, wanted = mixed(image), alone(image)
    np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-4 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("language", ["-std=c11", "-std=c17"])
def test_no_warnings(folder: Path, language: str) -> None:
    header = HEADER.parent
    for source in ("driver.c", "operators.c"):
        command = ["cc", language, "-Wall", "-Wextra", "-Werror", f"-I{header}", "-fsyntax-only"]
        subprocess.run([*command, source], cwd=folder, check=True)
