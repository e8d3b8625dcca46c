"""`crosschip tune`: a table, one document, a picture, a file to run."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import Crosschip

pytestmark = pytest.mark.slow

PLAIN = ("--devices", "onnxruntime", "--no-cache", "--shape", "image=1x3x4x8")


def test_the_document_the_picture_and_the_file(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    svg, file = tmp_path / "found.svg", tmp_path / "model.chips"
    outcome = crosschip(
        "tune", model, *PLAIN, "--accuracy", "0.5", "--svg", svg, "-o", file, "--json"
    )
    assert outcome.status == 0
    told = outcome.document
    chosen = told["trials"][told["chosen"]]
    assert chosen["error"] <= 0.5
    assert {trial["precision"] for trial in told["trials"]} == {"float32", "int8"}
    drawn = ElementTree.parse(svg).getroot()
    points = drawn.findall("{http://www.w3.org/2000/svg}circle")
    assert len(points) == sum(trial["speed"] is not None for trial in told["trials"])
    assert crosschip("run", file, "--json").status == 0


def test_the_table(crosschip: Crosschip, model: Path, caplog: pytest.LogCaptureFixture) -> None:
    outcome = crosschip("tune", model, *PLAIN, "--accuracy", "0", "--only", "float32")
    assert outcome.status == 0
    assert "onnxruntime float32, with an error of 0 where 0 is allowed" in outcome.out
    assert "no samples are given" in caplog.text


def test_options_that_mean_nothing(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("tune", model, *PLAIN, "--accuracy", "0.1", "--precision", "bfloat16")
    assert outcome.status != 0
    assert "tune chooses the precision" in outcome.err
