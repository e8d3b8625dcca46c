"""`crosschip export`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Crosschip


def test_the_command(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    outcome = crosschip("export", model, "-o", path, "--shape", "image=1x3x6x8", "--json")
    assert outcome.status == 0, outcome.err
    report = outcome.document
    assert report["format"] == "tflite"
    assert report["verification"]["engine"] == "LiteRT"
    assert report["verification"]["shapes"]["image"] == [1, 3, 6, 8]
    outcome = crosschip("export", model, "-o", tmp_path / "m.onnx", "--property", "opset=17")
    assert outcome.status == 0
    assert "run with ONNX Runtime: error" in outcome.out
