"""Functions that OpenVINO fuses into preceding operations, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from tests.devices.openvino_layers import noted_layers, said

import crosschip
from crosschip.devices.openvino import instruction_sets
from crosschip.ir import Array

pytestmark = pytest.mark.slow


def agreed(nodes: list[NodeProto], given: Array, constants: dict[str, Any]) -> None:
    """Compare the results of a model for `x`."""
    graph = helper.make_graph(
        nodes,
        "functions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, given.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    imports = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": given})
    made = crosschip.compile(crosschip.load(model), ["openvino"], cache=False)(given)
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)


def test_gelu_beyond_a_transposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """GELU is fused into the convolution, past a transposition."""
    layers = noted_layers(monkeypatch)
    random = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "filter"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["c", "shape"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Gelu", ["t"], ["g"]),
        helper.make_node("MatMul", ["g", "matrix"], ["y"]),
    ]
    constants = {
        "filter": random.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12,
        "shape": np.array([2, 16, 48]),
        "matrix": random.standard_normal((16, 8)).astype(np.float32),
    }
    agreed(nodes, random.standard_normal((2, 16, 6, 8)).astype(np.float32), constants)
    assert not said(layers, "Subgraph")
    (convolution,) = said(layers, "Convolution", "originalLayersNames")
    assert "Gelu" in convolution


def test_softplus_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """As exact as float32, and without OpenVINO's slow logarithm."""
    layers = noted_layers(monkeypatch)
    ends = np.array([0, -0.0, 88, -87, np.inf, -np.inf, np.nan, 1e-30, 3e38], np.float32)
    given = np.concatenate([np.linspace(-30, 30, 4087, dtype=np.float32), ends])
    nodes = [helper.make_node("Softplus", ["x"], ["y"])]
    agreed(nodes, given, {})
    kinds = {kind for layer in layers for kind in said([layer], "Eltwise", "primitiveType")}
    assert not any(kind.startswith("ref") for kind in kinds)


@pytest.mark.skipif(
    instruction_sets.breaks_at_sse41(), reason="OpenVINO compiles joint functions for AVX2 and more"
)
def test_what_keeps_nan_is_one_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = noted_layers(monkeypatch)
    given = np.linspace(-3, 3, 4096, dtype=np.float32)
    given[::5] = np.nan
    nodes = [helper.make_node("Sin", ["x"], ["s"]), helper.make_node("Max", ["s", "least"], ["y"])]
    agreed(nodes, given, {"least": np.float32(-0.5)})
    assert len(said(layers, "Subgraph") + said(layers, "Eltwise")) == 1


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
def test_rounding_to_integers_of_16_bits(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values stay floats if only dequantized values are read."""
    layers = noted_layers(monkeypatch)
    numbers = ["scale", "middle"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *numbers], ["q"]),
        helper.make_node("DequantizeLinear", ["q", *numbers], ["r"]),
        helper.make_node("Mul", ["r", "r"], ["y"]),
    ]
    constants = {"scale": np.float32(0.01), "middle": dtype(3000)}
    beyond = np.array([-1e9, 1e9, np.inf, -np.inf], np.float32)
    given = np.concatenate([np.linspace(-40, 40, 4092, dtype=np.float32), beyond])
    agreed(nodes, given, constants)
    assert not said(layers, "Convert")
