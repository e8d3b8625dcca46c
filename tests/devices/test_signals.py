"""1-D convolutions, images of one row here, on OpenVINO, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.devices.openvino_layers import noted_layers, said

import crosschip

pytestmark = pytest.mark.slow

LENGTH = 19
WINDOWS: dict[str, dict[str, Any]] = {
    "plain": {},
    "padded": {"pads": [2, 1]},
    "strided": {"strides": [3], "pads": [1, 2]},
    "dilated": {"dilations": [2]},
    "kept": {"auto_pad": "SAME_LOWER"},
    "valid": {"auto_pad": "VALID", "strides": [2]},
    "grouped": {"group": 2, "pads": [1, 1]},
    "a channel each": {"group": 4},
}


def network(random: np.random.Generator, window: dict[str, Any], width: int, sizes: Any) -> bytes:
    """Return two convolutions of signals with functions between."""
    channels = 4 // window.get("group", 1)
    numbers = {
        f"{name}{layer}": random.standard_normal(shape).astype(np.float32)
        for layer in (0, 1)
        for name, shape in (("w", (4, channels, width)), ("b", (4,)))
    }
    convolved = {"kernel_shape": [width], **window}
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c"], **convolved),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Softmax", ["r"], ["s"], axis=1),
        helper.make_node("Add", ["c", "s"], ["a"]),
        helper.make_node("Conv", ["a", "w1"], ["y"], **convolved),
    ]
    graph = helper.make_graph(
        nodes,
        "signals",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yr"],
        [numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    imports = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


@pytest.mark.parametrize("sizes", [(2, 4, LENGTH), ("N", 4, "L")], ids=["fixed", "open"])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("window", WINDOWS)
def test_as_onnx_runtime(
    window: str, width: int, sizes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None becomes an image, which OpenVINO would reorder before and after."""
    layers = noted_layers(monkeypatch)
    random = np.random.default_rng(0)
    model = network(random, WINDOWS[window], width, sizes)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with crosschip.compile(crosschip.load(model), ["openvino"], cache=False) as compiled:
        for batch, length in ((2, LENGTH), (1, 24)) if "N" in sizes else ((2, LENGTH),):
            x = random.standard_normal((batch, 4, length)).astype(np.float32)
            made = compiled.run({"x": x}).values()
            for array, expected in zip(made, session.run(None, {"x": x}), strict=True):
                np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5)
    ranks = [
        layer.get_output_partial_shape(0).rank.get_length()
        for layer in layers
        if said([layer], "Convolution")
    ]
    assert ranks == [3, 3]
