"""Programs written for Paddle Lite's interface run when their import line is changed."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosschip.apis.paddle_lite.config import ConfigBase

HERE = Path(__file__).parent
RECORDED = HERE.parents[1] / "importers" / "paddle" / "lite" / "recorded"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a program with another import line and some input; gives what it writes."""

    def run(program: str, given: Any, *arguments: str) -> Any:
        text = (HERE / "programs" / f"{program}.txt").read_text()
        assert text.count("from paddlelite.lite import *") == 1
        path = tmp_path / f"{program}.py"
        path.write_text(text.replace("paddlelite.lite", "crosschip.apis.paddle_lite"))
        suffix = ".npz" if isinstance(given, dict) else ".npy"
        image, result = (tmp_path / f"{name}{suffix}" for name in ("image", "result"))
        if isinstance(given, dict):
            np.savez(image, **given)
        else:
            np.save(image, given)
        monkeypatch.setattr(sys, "argv", [str(path), str(image), str(result), *arguments])
        runpy.run_path(str(path), run_name="__main__")
        return np.load(result)

    return run


@pytest.mark.slow
def test_mobilenet_v1_is_optimised_saved_and_loaded(models: Path, tmp_path: Path, run: Any) -> None:
    folder = models / "paddle2" / "mobilenet_v1"
    oracle = np.load(folder / "oracle-1.npz")
    files = [str(folder / "inference.pdmodel"), str(folder / "inference.pdiparams")]
    devices = "google_xnnpack,intel_openvino"
    saved = str(tmp_path / "optimised")
    image = oracle["input:x"]
    found = run("full_api", image, *files, saved, "nnadapter", devices)
    np.testing.assert_allclose(found, oracle["output:0"], rtol=1e-3, atol=1e-3)
    again = run("light_api", image, f"{saved}.nb")
    np.testing.assert_allclose(again, found, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_model_that_paddle_lite_has_optimised_finds_the_same_objects(
    models: Path, run: Any
) -> None:
    oracle = np.load(models / "networks" / "pdmodel" / "picodet" / "oracle-1.npz")
    given = {"image": oracle["input:image"]}
    found = run("detection", given, str(RECORDED / "picodet-arm.nb"))
    for index in range(3):
        np.testing.assert_allclose(
            found[str(index)], oracle[f"output:{index}"], rtol=1e-4, atol=1e-4
        )


def test_a_program_sees_what_paddle_lite_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ConfigBase, "devices", ["reference"])
    monkeypatch.setattr(sys, "argv", ["program.py", str(RECORDED / "network-x86.nb")])
    runpy.run_path(str(HERE / "program.py"))["main"]("crosschip.apis.paddle_lite")
    found = json.loads(capsys.readouterr().out)
    expected = json.loads((HERE / "recorded-2.13.json").read_text())
    assert list(found) == list(expected)
    for name, value in expected.items():
        if name.startswith("values"):
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
        else:
            assert found[name] == value, name
