"""The PP-OCRv4 models, run by ONNX Runtime directly: no other part of crosschip takes part."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from crosschip.demo.picture import Floats, Model
from crosschip.demo.reader import Reader
from crosschip.demo.recognition import load_characters


@pytest.fixture(scope="session")
def reader(models: Path) -> Reader:
    """A reader with the real models."""
    return Reader(
        detect=onnx_model(models / "ocr-onnx" / "ch_PP-OCRv4_det_infer.onnx"),
        classify=onnx_model(models / "ocr-onnx" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
        recognize=onnx_model(models / "ocr-onnx" / "ch_PP-OCRv4_rec_infer.onnx"),
        characters=load_characters(models / "ocr-paddle" / "ppocr_keys_v1.txt"),
    )


def onnx_model(path: Path) -> Model:
    """Returns the model in a file, with its one input and one output."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def run(x: Floats) -> Floats:
        return np.asarray(session.run(None, {name: x})[0], np.float32)

    return run
