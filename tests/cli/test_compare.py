"""`crosschip compare`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Crosschip

DEVICES = ("--devices", "onnxruntime,openvino", "--runs", 2, "--no-cache")
SHAPES = ("--shape", "N=2", "--shape", "H=5")


def test_a_table_and_a_picture(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    for name, begin in (("times.svg", b"<svg"), ("times.png", b"\x89PNG")):
        outcome = crosschip("compare", model, *DEVICES, *SHAPES, "--out", tmp_path / name)
        assert outcome.status == 0, outcome.err
        assert (tmp_path / name).read_bytes().startswith(begin)
    for text in ("classifier.onnx: image [2, 3, 5, 8]", "times as fast", "crosschip openvino"):
        assert text in outcome.out
    assert "error against the reference (NumPy)" in outcome.out


def test_a_document(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    image = np.random.default_rng(0).random((1, 3, 6, 8), np.float32)
    np.save(tmp_path / "image.npy", image)
    document = crosschip(
        *("compare", model, *DEVICES, "--input", f"image={tmp_path / 'image.npy'}"),
        *("--against", "openvino", "--threads", 1, "--json"),
    ).document
    assert document["inputs"] == {"image": [1, 3, 6, 8], "shift": [1, 2]}
    assert document["threads"] == 1
    assert document["baseline"] == "openvino"
    rows = {(row["name"], row["engine"]): row for row in document["measurements"]}
    names = {("openvino", True)} | {(n, False) for n in ("onnxruntime", "openvino", "measured")}
    assert set(rows) == names
    assert all(row["error"] < 1e-5 for row in rows.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "nosuch"], "no engine 'nosuch'"),
        (["--devices", "nosuch"], "no device 'nosuch'"),
        (["--out", "times.pdf"], "pictures are .svg or .png files"),
        (["--shape", "picture=1x3x4x8"], "picture"),
        (["--seconds", "0"], "seconds is 0"),
    ],
)
def test_what_does_not_fit_is_an_error(
    crosschip: Crosschip, model: Path, arguments: list[str], message: str
) -> None:
    outcome = crosschip("compare", model, *DEVICES, *arguments)
    assert (outcome.status, outcome.out) == (1, "")
    assert message in outcome.err


def test_the_status_is_one_if_nothing_runs(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("compare", model, "--devices", "openvino:7", "--against", "", "--no-cache")
    assert outcome.status == 1
    assert "did not run: there is no device 'openvino:7'" in outcome.out
