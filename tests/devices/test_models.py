"""Real models on the engines, against what the framework that wrote them computes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crosschip.hal import Options
from crosschip.importers import load
from crosschip.passes import simplify

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

VISION = [
    *("mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small"),
    *("resnet50", "shufflenet_v2_x1_0", "squeezenet1_1"),
]
FOLDERS = [
    "ocr-paddle/ch_PP-OCRv4_det_infer",
    "ocr-paddle/ch_PP-OCRv4_rec_infer",
    "ocr-paddle/ch_ppocr_mobile_v2_cls_infer",
    *(f"{paddle}/{name}" for paddle in ("paddle2", "paddle3") for name in VISION),
    *(f"layouts/{layout}" for layout in ("combined", "json", "pdmodel", "separate")),
]
FILES = [
    "ocr-onnx/ch_PP-OCRv4_det_infer.onnx",
    "ocr-onnx/ch_PP-OCRv4_rec_infer.onnx",
    "ocr-onnx/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    *(f"onnx/{name}.onnx" for name in VISION),
]


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_outputs_are_those_of_the_framework(check: Checker, models: Path, name: str) -> None:
    path = models / name
    found = path.glob("oracle-*.npz") if path.is_dir() else path.parent.glob(f"{path.stem}.oracle*")
    oracles = sorted(found)
    assert oracles, f"no oracle for {path}"
    model = simplify(load(path))
    for operation in model.operations:
        support = check.device.supports(operation, Options())
        assert support, support.reason
    program = check.device.compile(model, Options(threads=1))
    for oracle in oracles:
        with np.load(oracle) as arrays:
            outputs = program.run([arrays[f"input:{name}"] for name in model.inputs])
            for index, output in enumerate(outputs):
                expected = arrays[f"output:{index}"]
                assert output.shape == expected.shape
                assert np.abs(output - expected).max() <= 1e-4 * np.abs(expected).max()
    program.close()
