"""Real models: the reference device against ONNX Runtime and against Paddle's own outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from crosschip.importers import load

Array = NDArray[Any]
Runs = Callable[[Path, Sequence[Array]], tuple[Sequence[Array], Sequence[Array]]]

NAMES = [
    "ocr-onnx/ch_PP-OCRv4_det_infer",
    "ocr-onnx/ch_PP-OCRv4_rec_infer",
    "ocr-onnx/ch_ppocr_mobile_v2.0_cls_infer",
    "onnx/mobilenet_v1",
    "onnx/mobilenet_v2",
    "onnx/mobilenet_v3_small",
    "onnx/resnet50",
    "onnx/shufflenet_v2_x1_0",
    "onnx/squeezenet1_1",
]


@pytest.mark.parametrize("name", NAMES)
def test_outputs(models: Path, runs: Runs, name: str) -> None:
    path = models / f"{name}.onnx"
    oracles = sorted(path.parent.glob(f"{path.stem}.oracle-1*.npz"))
    assert oracles
    for file in oracles:
        with np.load(file) as oracle:
            inputs = [oracle[key] for key in oracle if key.startswith("input:")]
            paddle = [oracle[key] for key in oracle if key.startswith("output:")]
        found, onnxruntime = runs(path, inputs)
        for wanted in (onnxruntime, paddle):
            for ours, theirs in zip(found, wanted, strict=True):
                assert ours.shape == theirs.shape
                assert np.abs(ours - theirs).max() <= 1e-4 * np.abs(theirs).max()


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_as_engines_want_them(models: Path, name: str) -> None:
    weights = [operand.value for operand in load(models / f"{name}.onnx").constants]
    assert sum(array.nbytes for array in weights if array is not None) > 500_000
    for array in weights:
        assert array is not None
        assert array.flags.aligned
        assert array.flags.c_contiguous
        assert array.dtype.isnative
