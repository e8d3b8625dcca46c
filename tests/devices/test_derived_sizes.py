"""Sizes derived from models: real models must run with them in ONNX Runtime."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import onnxruntime
import pytest
from tests.modelling import ROOT

import crosschip
from crosschip.hal import Sizes
from crosschip.ir import InputError
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.shapes.formatting import as_options, shortest
from crosschip.runtime.shapes.shape_search import ShapeSearch

_EXPORTED = ROOT / "tests" / "importers" / "onnx" / "exported"
_FILES = [
    *(f"ocr-onnx/ch_PP-OCRv4_{name}_infer.onnx" for name in ("det", "rec")),
    "ocr-onnx/ch_ppocr_mobile_v2.0_cls_infer.onnx",
]


@pytest.mark.parametrize(
    "path",
    [*(ROOT / "build" / "models" / name for name in _FILES), *sorted(_EXPORTED.glob("*.onnx"))],
    ids=lambda path: path.stem,
)
def test_real_models_run_at_the_sizes_on_onnx_runtime_itself(path: Path) -> None:
    """A text reader of height 48, tables of positions, keys and values."""
    if not path.exists():
        pytest.skip(f"{path} is not there")
    model = crosschip.load(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_mem_reuse = False  # what exporters say of sizes inside a file may be wrong
    session = onnxruntime.InferenceSession(path, options)
    tried = list(islice(ShapeSearch(model, Sizes()).shapes(), 2))
    assert tried
    for shapes in tried:
        session.run(None, random_inputs(model, shapes))
    open_types = {n: o.type for n, o in model.inputs.items() if o.type.static_shape is None}
    assert open_types
    hint = shortest(open_types, tried[0])
    assert {n: a.shape for n, a in random_inputs(model, hint).items()} == tried[0]
    if any(size != 1 for size in hint.values()):
        with pytest.raises(InputError) as raised:
            random_inputs(model, {})
        assert as_options(hint).split()[-1] in str(raised.value)
