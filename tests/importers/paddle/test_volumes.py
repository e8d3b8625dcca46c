"""Poolings of volumes as Paddle writes them, against what Paddle computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.writers import Paddle2Writer
from tests.ops.paddle_oracle import Case, cases_of

import crosschip


@pytest.mark.parametrize("devices", ["reference", "openvino", "onnxruntime", "xla"])
@pytest.mark.parametrize("case", cases_of("pool3d"), ids=lambda case: str(case.settings))
def test_pooling(case: Case, devices: str, tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "float32", case.inputs["input"].shape)
    names = {"Out": "y"} if "pooling_type" in case.settings else {"Out": "y", "Mask": "mask"}
    type_ = "pool3d" if "pooling_type" in case.settings else "max_pool3d_with_index"
    settings = {"paddings": [0, 0, 0], **case.settings}
    writer.operator(type_, {"X": "x"}, names, settings)
    for name in names.values():
        writer.output(name)
    path = writer.save(tmp_path)
    with crosschip.compile(
        path, list(dict.fromkeys([devices, "reference"])), cache=False
    ) as compiled:
        results = list(compiled.run({"x": case.inputs["input"]}).values())
    assert len(results) == len(case.outputs)
    for result, expected in zip(results, case.outputs, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
