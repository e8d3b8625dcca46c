"""Dynamically quantized LSTM on OpenVINO, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.devices.openvino_layers import noted_layers, said
from tests.exact_onnxruntime import exact_session

import crosschip
from crosschip.devices.openvino.precision import multiplies_bytes
from crosschip.ir import Array

pytestmark = pytest.mark.slow

STEPS, WIDTH = 7, 24
Draw = Callable[[np.random.Generator], dict[str, Array]]
DOMAIN = "com.microsoft"


def network(random: np.random.Generator, hidden: int, width: int, **given: Array) -> bytes:
    """Return a bidirectional DynamicQuantizeLSTM in ONNX, with the given inputs replaced."""
    rows = 4 * hidden
    numbers: dict[str, Array] = {
        "W": random.integers(-127, 128, (2, width, rows)).astype(np.int8),
        "R": random.integers(-127, 128, (2, hidden, rows)).astype(np.int8),
        "B": random.normal(0, 0.3, (2, 2 * rows)).astype(np.float32),
        "Ws": random.uniform(0.001, 0.003, 2).astype(np.float32) * (WIDTH / width) ** 0.5,
        "Wz": np.zeros(2, np.int8),
        "Rs": random.uniform(0.001, 0.003, 2).astype(np.float32) * (WIDTH / hidden) ** 0.5,
        "Rz": np.zeros(2, np.int8),
        **given,
    }
    names = ["x", "W", "R", "B", "", "", "", "", "Ws", "Wz", "Rs", "Rz"]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional"}
    outputs = ["y", "h", "c"]
    node = helper.make_node("DynamicQuantizeLSTM", names, outputs, domain=DOMAIN, **attributes)
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, 1, width])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=imports, ir_version=8)
    return model.SerializeToString()


def rows_of_scales(random: np.random.Generator) -> dict[str, Array]:
    """Return a scale and a zero point per row of the weights."""
    scales = {f"{name}s": random.uniform(0.001, 0.003, (2, 64)) for name in "WR"}
    zeros = {f"{name}z": np.zeros((2, 64), np.int8) for name in "WR"}
    return {**{name: scale.astype(np.float32) for name, scale in scales.items()}, **zeros}


def between(low: int, high: int, zero_point: int) -> Draw:
    """Return uint8 weights in a range."""

    def draw(random: np.random.Generator) -> dict[str, Array]:
        sizes = {"W": WIDTH, "R": 16}
        return {
            **{
                n: random.integers(low, high, (2, s, 64)).astype(np.uint8) for n, s in sizes.items()
            },
            **{f"{name}z": np.full(2, zero_point, np.uint8) for name in sizes},
        }

    return draw


CASES: dict[str, tuple[int, Draw]] = {
    "of bytes": (WIDTH, lambda random: {}),
    "of a scale a row": (WIDTH, rows_of_scales),
    "with zero points": (WIDTH, between(60, 200, 130)),
    "beyond bytes": (WIDTH, between(0, 256, 90)),
    "of sums that float32 rounds": (2000, lambda random: {}),
}


@pytest.mark.parametrize("case", CASES)
def test_as_onnx_runtime(case: str) -> None:
    random = np.random.default_rng(3)
    width, draw = CASES[case]
    model = network(random, 16, width, **draw(random))
    inputs = {"x": random.standard_normal((STEPS, 1, width)).astype(np.float32)}
    session = exact_session(model)
    with crosschip.compile(crosschip.load(model), ["openvino"], cache=False) as compiled:
        assert len(compiled.placement.decisions[0].parts) == 1
        found = compiled.run(inputs)
    for array, expected in zip(found.values(), session.run(None, inputs), strict=True):
        np.testing.assert_allclose(array, expected, atol=2e-6)


@pytest.mark.parametrize("case", CASES)
def test_all_gates_have_one_product_of_bytes(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of floats only where bytes would be inexact."""
    if not multiplies_bytes():
        pytest.skip("this processor cuts off sums of products of bytes")
    layers = noted_layers(monkeypatch)
    random = np.random.default_rng(3)
    width, draw = CASES[case]
    model = crosschip.load(network(random, 16, width, **draw(random)))
    crosschip.compile(model, "openvino", cache=False).close()
    exact = case not in ("beyond bytes", "of sums that float32 rounds")
    products = said(layers, "FullyConnected", "runtimePrecision")
    assert products == ["u8" if exact else "f32"] * 2
