"""Real models in all formats, compared with Paddle's outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.helpers import error, outputs

from crosschip.importers import load

VISION = (
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "resnet50",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
)
READING = {
    "ch_PP-OCRv4_det_infer": ("1", "4", "1-224x352"),
    "ch_PP-OCRv4_rec_infer": ("1", "4", "1-48x160"),
    "ch_ppocr_mobile_v2_cls_infer": ("1", "4"),
}
LAYOUTS = ("pdmodel", "combined", "separate", "json")

MODELS = (
    *((f"paddle2/{name}", key) for name in VISION for key in ("1", "4")),
    *((f"paddle3/{name}", "1") for name in VISION),
    *((f"ocr-paddle/{name}", key) for name, keys in READING.items() for key in keys),
    *((f"layouts/{name}", key) for name in LAYOUTS for key in ("1", "4")),
)
"""Folders with a model, and the oracles in them; the formats differ in nothing but themselves."""


@pytest.mark.parametrize(("folder", "key"), MODELS)
def test_computes_what_paddle_does(models: Path, folder: str, key: str) -> None:
    oracle = np.load(models / folder / f"oracle-{key}.npz")
    inputs = {name.partition(":")[2]: oracle[name] for name in oracle if name.startswith("input")}
    result = outputs(load(models / folder), inputs)
    expected = [oracle[f"output:{index}"] for index in range(len(oracle) - len(inputs))]
    assert len(result) == len(expected) > 0
    for one, other in zip(result, expected, strict=True):
        assert error(one, other) < 1e-4


@pytest.mark.parametrize("name", VISION)
def test_both_formats_give_the_same_operations(models: Path, name: str) -> None:
    of_2, of_3 = (load(models / format / name) for format in ("paddle2", "paddle3"))
    assert [op.type for op in of_2.operations] == [op.type for op in of_3.operations]
    assert list(of_2.inputs) == list(of_3.inputs) == ["x"]


def test_a_reshape_with_one_computed_size_has_a_constant_shape(models: Path) -> None:
    model = load(models / "ocr-paddle" / "ch_PP-OCRv4_rec_infer")
    reshapes = [op for op in model.operations if op.type == "RESHAPE"]
    assert len(reshapes) > 3
    assert all(operand.is_constant for op in reshapes for operand in op.inputs[1:] if operand)
