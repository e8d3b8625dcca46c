"""Cells on integers whose state is fed back: the same integers as LiteRT in every run."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tests.importers.tflite.comparison import inputs_of
from tests.importers.tflite.layer_cases import LAYERS
from tests.importers.tflite.single_operator import CASES, Case, Draw

import crosschip
from crosschip.ir import Array

_SEEDS, _NIGHTLY_SEEDS, _ENGINE_SEEDS, _RUNS = 3, 200, 8, 4
_CELLS = [name for name in LAYERS if re.fullmatch(r".*(LSTM|SVDF) \(quantized\)", name)]


def _runs(case: Case, draw: Draw) -> tuple[list[Array], list[Array]]:
    """Return the inputs of some runs, and LiteRT's outputs."""
    interpreter = Interpreter(
        model_content=case.file(), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    (input,), (output,) = interpreter.get_input_details(), interpreter.get_output_details()
    shape, dtype = tuple(input["shape"]), np.dtype(input["dtype"]).name
    inputs = [draw.quantized(shape, dtype).elements for _ in range(_RUNS)]
    outputs = []
    for array in inputs:
        interpreter.set_tensor(input["index"], array)
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(output["index"]))
    return inputs, outputs


def _check(cell: str, seeds: int, device: str, steps: int) -> None:
    """Compare a device with LiteRT; outputs may differ by some steps.

    Each run begins with LiteRT's state, which is that of `reference`, since differences feed back.
    """
    devices = list(dict.fromkeys([device, "reference"]))
    for seed in range(seeds):
        draw = Draw(seed)
        case = CASES[cell](draw, cell)
        inputs, expected = _runs(case, draw)
        model = crosschip.load(case.file())
        (name, *_), (result, *_) = model.inputs, model.outputs
        states = inputs_of(model, inputs[:1])
        del states[name]
        with (
            crosschip.compile(model, devices, cache=False) as compiled,
            crosschip.compile(model, ["reference"], cache=False) as exact,
        ):
            for number, (array, wanted) in enumerate(zip(inputs, expected, strict=True)):
                feed = {name: array, **states}
                actual = compiled.run(feed)[result]
                difference = np.abs(actual.astype(int) - wanted.astype(int))
                assert difference.max(initial=0) <= steps, f"seed {seed}, run {number}: {case}"
                outputs = exact.run(feed)
                states = {each: outputs[each.replace("past.", "present.")] for each in states}


@pytest.mark.parametrize("cell", _CELLS)
def test_each_run_gives_litert_integers(cell: str) -> None:
    _check(cell, _SEEDS, "reference", 0)


@pytest.mark.nightly
@pytest.mark.parametrize("cell", _CELLS)
def test_each_run_of_many_files_gives_litert_integers(cell: str) -> None:
    _check(cell, _NIGHTLY_SEEDS, "reference", 0)


@pytest.mark.nightly
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "xla"])
@pytest.mark.parametrize("cell", _CELLS)
def test_engines_are_within_one_step(cell: str, device: str) -> None:
    _check(cell, _ENGINE_SEEDS, device, 1)
