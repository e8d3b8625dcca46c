"""`crosschip demo`, on Paddle's own model files as the wheel carries them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from crosschip.demo.picture import DEMO_PICTURE, DEMO_TEXT

if TYPE_CHECKING:
    from tests.cli.conftest import Crosschip

PRINTED = DEMO_TEXT.read_text("utf-8").splitlines()
UPSIDE_DOWN = "这一行上下颠倒"


@pytest.mark.parametrize("devices", ["openvino,onnxruntime", "onnxruntime,openvino"])
def test_reads_what_is_printed_on_two_engines(
    crosschip: Crosschip, tmp_path: Path, devices: str
) -> None:
    picture = tmp_path / "boxes.png"
    outcome = crosschip(
        "demo", "--devices", devices, "--save", str(picture), "--no-cache", "--json"
    )
    assert outcome.status == 0, outcome.err
    assert [line["text"] for line in outcome.document["lines"]] == PRINTED
    assert {row["device"] for row in outcome.document["models"]} == set(devices.split(","))
    before, after = (
        np.asarray(Image.open(file).convert("RGB")) for file in (DEMO_PICTURE, picture)
    )
    assert before.shape == after.shape
    assert (before != after).any(), "the boxes are not drawn"


def test_reads_the_users_own_picture(crosschip: Crosschip, tmp_path: Path) -> None:
    upside_down = tmp_path / "turned.png"
    Image.open(DEMO_PICTURE).convert("RGB").rotate(180).save(upside_down)
    outcome = crosschip(
        *("demo", "--image", str(upside_down), "--devices", "onnxruntime"),
        *("--save", str(tmp_path / "boxes.png"), "--no-cache", "--json"),
    )
    assert outcome.status == 0, outcome.err
    turned = {line["text"]: line["turned"] for line in outcome.document["lines"]}
    upright = [text for text, is_turned in turned.items() if not is_turned]
    assert upright == [UPSIDE_DOWN]
    assert set(PRINTED) - set(turned) <= {PRINTED[1]}, "only the second is in two parts now"


def test_a_file_that_is_no_picture_is_named(crosschip: Crosschip, tmp_path: Path) -> None:
    file = tmp_path / "text.png"
    file.write_text("not a picture")
    outcome = crosschip("demo", "--image", str(file))
    assert outcome.status == 1
    assert str(file) in outcome.err
    assert "Traceback" not in outcome.err
