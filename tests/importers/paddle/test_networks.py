"""Small networks built from their public definitions, compared with Paddle's outputs.

Paddle 2 and Paddle 3 have saved them (`scripts/models/networks.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from tests.importers.paddle.helpers import error

import crosschip
from crosschip.importers import load
from crosschip.ir import Array

NETWORKS = (
    "ernie",
    "faster_rcnn",
    "hgnet",
    "layoutlm",
    "picodet",
    "pp_liteseg",
    "ppyoloe",
    "reader",
    "rt_detr",
    "segformer",
    "slanet",
    "uvdoc",
)
RUNS = (("pdmodel", "reference"), ("json", "reference"), ("pdmodel", "onnxruntime"))


@pytest.mark.parametrize(("format", "device"), RUNS)
@pytest.mark.parametrize("name", NETWORKS)
def test_computes_what_paddle_does(models: Path, format: str, device: str, name: str) -> None:
    folder = models / "networks" / format / name
    recordings = sorted(folder.glob("oracle-*.npz"))
    assert len(recordings) == 2
    devices = dict.fromkeys((device, "reference"))
    with crosschip.compile(load(folder), list(devices), cache=False) as compiled:
        for path in recordings:
            oracle = np.load(path)
            inputs = {key[6:]: oracle[key] for key in oracle if key.startswith("input:")}
            result = list(cast("dict[str, Array]", compiled.run(inputs)).values())
            expected = [oracle[f"output:{index}"] for index in range(len(oracle) - len(inputs))]
            assert len(result) == len(expected) > 0
            for one, other in zip(result, expected, strict=True):
                assert one.dtype == other.dtype
                assert error(one, other) < (1e-3 if other.dtype.kind == "f" else 1e-9)


@pytest.mark.parametrize("format", ["pdmodel", "json"])
def test_there_are_no_others(models: Path, format: str) -> None:
    assert {path.name for path in (models / "networks" / format).iterdir()} == {*NETWORKS}
