"""Real models on the engines, saved and loaded: results are bit-identical."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from tests.precisions import is_refused

import crosschip
from crosschip.hal import Sizes
from crosschip.importers import load
from crosschip.ir import Extension
from crosschip.ir.bodies import walk_operations
from crosschip.runtime.device_timing import typical_inputs

MODELS = [
    "onnx/mobilenet_v3_small.onnx",
    "ocr-paddle/ch_PP-OCRv4_rec_infer",
    "control/pdmodel/branch_in_loop",
    "control/pdmodel/loop_in_loop",
    "control/pdmodel/growing",
]
DEVICES = ["onnxruntime", "openvino,onnxruntime", "openvino,reference"]
ON_XLA = MODELS[:2]
"""Models whose sizes are all known once those of their inputs are."""


@pytest.mark.parametrize(
    ("name", "devices"), [*product(MODELS, DEVICES), *product(ON_XLA, ["xla,reference"])]
)
def test_what_is_loaded_answers_as_what_was_saved(
    models: Path, tmp_path: Path, name: str, devices: str
) -> None:
    """The file contains the weights once."""
    model = load(models / name)
    inputs = typical_inputs(model, Sizes())
    shapes = {name: array.shape for name, array in inputs.items()} if "xla" in devices else None
    path = tmp_path / "model.chips"
    with crosschip.compile(model, devices, cache=False, threads=1, shapes=shapes) as compiled:
        expected = compiled.run(inputs)
        compiled.save(path)
    with crosschip.load_compiled(path) as loaded:
        assert loaded.placement.summary() == compiled.placement.summary()
        actual = loaded.run(inputs)
    for output, array in expected.items():
        np.testing.assert_array_equal(actual[output], array, strict=True)
    weights = sum(o.content.nbytes for o in model.constants if o.content is not None)
    assert path.stat().st_size < 1.25 * weights + 1_000_000


def test_programs_for_shapes_are_loaded(models: Path) -> None:
    """In a loop body whose state grows with each iteration."""
    model = load(models / "control/pdmodel/growing")
    inputs = {**typical_inputs(model, Sizes()), "x1": np.array([3])}
    with crosschip.compile(model, "xla,reference", cache=False) as compiled:
        expected = compiled.run(inputs)
        content = compiled.to_bytes()
        made = sum(segment.compiled for segment in compiled.statistics().segments)
    with crosschip.load_compiled(content) as loaded:
        actual = loaded.run(inputs)
        segments = loaded.statistics().segments
        assert sum(segment.loaded for segment in segments) == made == 3
        assert not any(segment.compiled for segment in segments)
    for output, array in expected.items():
        np.testing.assert_array_equal(actual[output], array, strict=True)


@pytest.mark.parametrize("device", ["openvino", "xla"])
def test_the_precision_is_the_one_that_was_asked_for(models: Path, device: str) -> None:
    model = load(models / "onnx/mobilenet_v3_small.onnx")
    shapes = dict.fromkeys(model.inputs, (1, 3, 224, 224))
    if is_refused(
        device, "bfloat16", lambda: crosschip.compile(model, f"{device}/bfloat16", shapes=shapes)
    ):
        return
    tokens = set()
    for precision in ("float32", "bfloat16"):
        devices = [device, "reference"]
        with crosschip.compile(
            model, devices, cache=False, precision=precision, shapes=shapes
        ) as compiled:
            content, token = compiled.to_bytes(), compiled.token
        with crosschip.load_compiled(content) as loaded:
            assert loaded.options.precision.value == precision
            assert loaded.token == token
        tokens.add(token)
    assert len(tokens) == 2


def test_extensions_survive(tmp_path: Path) -> None:
    """Operations that only ONNX Runtime has, with string inputs and outputs."""
    text = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
    g (string[N] s) => (string[N] t, int64[N] n) {
        t = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_strings = ["A", "B"],
            default_string = "?"> (s)
        n = ai.onnx.ml.LabelEncoder <keys_strings = ["A", "B"], values_int64s = [1, 2]> (t)
    }"""
    model = load(parser.parse_model(text))
    assert any(isinstance(operation, Extension) for operation in walk_operations(model))
    words = {"s": np.array(["a", "b", "c"], object)}
    path = tmp_path / "words.chips"
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        compiled.save(path)
    with crosschip.load_compiled(path) as loaded:
        outputs = loaded.run(words)
    assert outputs["t"].tolist() == ["A", "B", "?"]
    assert outputs["n"].tolist() == [1, 2, -1]
