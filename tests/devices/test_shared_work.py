"""The number of threads that OpenVINO gets for models with loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from crosschip.devices.openvino import OpenVinoDevice
from crosschip.devices.openvino.compiling import threads
from crosschip.devices.openvino.program import OpenVinoProgram
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, Model, TensorType
from crosschip.ops.standard.activation import Tanh
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.recurrent import LSTM

STEPS, WIDTH = 40, 8
LOOPING: dict[str, Any] = {"clip": 3.0}
"""What OpenVINO's own network lacks."""


def network(hidden: int, wide: int = 0, **given: Any) -> Model:
    """Return an LSTM, optionally after two products with this many columns."""
    random = np.random.default_rng(5)

    def numbers(*shape: int) -> Array:
        return random.normal(0, 0.1, shape).astype(np.float32)

    b = Builder("network")
    x = b.input("x", TensorType(ElementType.FLOAT32, (STEPS, 1, WIDTH)))
    if wide:
        x = b.add(Tanh, b.add(MatMul, x, b.constant(numbers(WIDTH, wide))))
        x = b.add(MatMul, x, b.constant(numbers(wide, WIDTH)))
    rows = 4 * hidden
    weights = (b.constant(numbers(1, rows, size)) for size in (WIDTH, hidden))
    y, _, _ = b.add_all(LSTM, x, *weights, **given)
    b.output("y", y)
    return b.build()


@pytest.mark.parametrize(
    ("model", "options", "wanted"),
    [
        (network(16, **LOOPING), Options(threads=4), {"INFERENCE_NUM_THREADS": 1}),
        (network(16, **LOOPING), Options(threads=4, in_flight=2), {"INFERENCE_NUM_THREADS": 2}),
        (network(16), Options(threads=4), {}),
        (network(1024, **LOOPING), Options(threads=4), {}),
        (network(16, 40000, **LOOPING), Options(threads=4), {}),
    ],
    ids=["small steps", "several runs", "no loop", "large steps", "much besides"],
)
def test_threads_share_what_they_gain_by(
    model: Model, options: Options, wanted: Mapping[str, Any]
) -> None:
    assert threads(model, options) == wanted


def test_programs_and_those_loaded_use_as_many() -> None:
    device, model, options = OpenVinoDevice(), network(16, **LOOPING), Options(threads=2)
    program = device.compile(model, options)
    saved = program.save()
    assert saved is not None
    for each in (program, device.load(saved, model, options)):
        assert isinstance(each, OpenVinoProgram)
        assert each._compiled_model.get_property("INFERENCE_NUM_THREADS") == 1
