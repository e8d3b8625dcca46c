"""Broadcast indices on OpenVINO, compared with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.devices.openvino_layers import noted_layers

import crosschip
from crosschip.ir import DeviceError

pytestmark = pytest.mark.slow

ROWS, COUNT, WIDTH = 6, 5, 40


def network(kind: str) -> bytes:
    """Gather or scatter rows by one index per row, broadcast over the columns."""
    indices = [
        helper.make_node("Unsqueeze", ["i", "last"], ["column"]),
        helper.make_node("Expand", ["column", "shape"], ["indices"]),
    ]
    if kind == "GatherElements":
        used = helper.make_node(kind, ["x", "indices"], ["y"], axis=0)
    else:
        given = ["x", "indices", "updates"]
        used = helper.make_node(kind, given, ["y"], axis=0, reduction="add")
    updates = np.random.default_rng(1).standard_normal((COUNT, WIDTH)).astype(np.float32)
    numbers = {"last": np.array([-1]), "shape": np.array([COUNT, WIDTH]), "updates": updates}
    graph = helper.make_graph(
        [*indices, used],
        "rows",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, WIDTH]),
            helper.make_tensor_value_info("half", TensorProto.INT64, [COUNT]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    # Inputs are compared with bounds as they arrive: these indices are computed.
    graph.node.insert(0, helper.make_node("Add", ["half", "half"], ["i"]))
    imports = [helper.make_opsetid("", 18)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


@pytest.mark.parametrize("kind", ["GatherElements", "ScatterElements"])
def test_they_are_looked_at_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layers = noted_layers(monkeypatch)
    model = network(kind)
    x = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with crosschip.compile(crosschip.load(model), ["openvino"], cache=False) as compiled:
        for half in ([0, 2, 1, 2, 0], [-3, -1, 0, 1, -2]):
            given = {"x": x, "half": np.array(half, np.int64)}
            (expected,) = session.run(None, given)
            np.testing.assert_allclose(compiled.run(given)["y"], expected, rtol=1e-6)
        for half in ([0, 3, 0, 0, 0], [0, 0, 0, 0, -4]):
            with pytest.raises(DeviceError, match="out of range"):
                compiled.run({"x": x, "half": np.array(half, np.int64)})
    booleans = [
        layer for layer in layers if layer.get_output_element_type(0).get_type_name() == "u8"
    ]
    assert booleans
    assert max(np.prod(layer.get_output_shape(0)) for layer in booleans) == COUNT
