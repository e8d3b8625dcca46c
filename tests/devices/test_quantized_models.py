"""Models quantized by ONNX Runtime's tool, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from tests.exact_onnxruntime import exact_session

import crosschip
from crosschip.devices.openvino.precision import multiplies_bytes
from crosschip.devices.openvino.program import OpenVinoProgram
from crosschip.ir import Array

SHAPE = (2, 3, 16, 16)


def network(random: np.random.Generator) -> onnx.ModelProto:
    """Return a small network of random convolutions, poolings, a sum and a product."""
    initializers: list[TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def weights(*shape: int) -> str:
        values = random.normal(scale=0.4, size=shape).astype(np.float32)
        initializers.append(numpy_helper.from_array(values, f"weights{len(initializers)}"))
        return initializers[-1].name

    def node(type_: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(type_, inputs, [f"value{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    value, channels = "x", SHAPE[1]
    for _ in range(int(random.integers(1, 4))):
        group = channels if random.random() < 0.3 else 1
        new = channels if group > 1 else int(random.choice([4, 8, 12]))
        size = int(random.choice([1, 3]))
        filters = weights(new, channels // group, size, size)
        bias = [weights(new)] if random.random() < 0.7 else []
        made = node("Conv", value, filters, *bias, group=group, pads=[size // 2] * 4)
        if random.random() < 0.6:
            made = node("Relu", made)
        if new == channels and random.random() < 0.5:
            made = node("Add", made, value)
        if random.random() < 0.3:
            made = node("MaxPool", made, kernel_shape=[2, 2])
        value, channels = made, new
    flat = node("Flatten", node("GlobalAveragePool", value))
    if random.random() < 0.5:
        value = node("Gemm", flat, weights(5, channels), weights(5), transB=1)
    else:
        value = node("MatMul", flat, weights(channels, 5))
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
        initializers,
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, ir_version=9, opset_imports=opset)


class Images(CalibrationDataReader):  # type: ignore[misc]  # the package has no types
    """Random images for calibration."""

    def __init__(self, random: np.random.Generator) -> None:
        self._images: Iterator[Array] = iter(random.normal(size=(4, *SHAPE)).astype(np.float32))

    def get_next(self) -> dict[str, Array] | None:
        image = next(self._images, None)
        return None if image is None else {"x": image}


@pytest.mark.parametrize("seed", range(12))
def test_as_the_engine_alone(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    plain, quantized = tmp_path / "plain.onnx", tmp_path / "quantized.onnx"
    onnx.save(network(random), plain)
    signed = random.random() < 0.5
    quantize_static(
        plain,
        quantized,
        Images(random),
        quant_format=QuantFormat.QDQ,
        per_channel=bool(random.random() < 0.5),
        activation_type=QuantType.QInt8 if signed else QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    image = random.normal(size=SHAPE).astype(np.float32)
    (expected,) = exact_session(str(quantized)).run(None, {"x": image})
    model = crosschip.load(quantized)
    with crosschip.compile(model, ["onnxruntime"], cache=False) as compiled:
        np.testing.assert_array_equal(compiled(image), expected)
    step = np.abs(expected).max() / 127
    for devices in (["openvino", "reference"], ["reference"]):
        with crosschip.compile(model, devices, cache=False) as compiled:
            assert len(compiled.placement.segments) == 1
            np.testing.assert_allclose(compiled(image), expected, atol=3 * step)


def test_openvino_multiplies_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Quantized images are computed on integers, also in the QOperator form."""
    compiled: list[Any] = []
    make = OpenVinoProgram.__init__

    def noted(self: OpenVinoProgram, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        compiled.append(self._compiled_model)

    monkeypatch.setattr(OpenVinoProgram, "__init__", noted)
    random = np.random.default_rng(3)
    plain, quantized = tmp_path / "plain.onnx", tmp_path / "quantized.onnx"
    onnx.save(network(random), plain)
    for form in (QuantFormat.QDQ, QuantFormat.QOperator):
        quantize_static(plain, quantized, Images(random), quant_format=form)
        crosschip.compile(crosschip.load(quantized), "openvino", cache=False).close()
        layers = [node.get_rt_info() for node in compiled.pop().get_runtime_model().get_ops()]
        types = {
            layer["runtimePrecision"].astype(str)
            for layer in layers
            if layer["layerType"].astype(str) == "Convolution"
        }
        assert types <= {"u8", "i8"} if multiplies_bytes() else types == {"f32"}
        assert types


def signals(random: np.random.Generator) -> onnx.ModelProto:
    """Return two consecutive quantized convolutions of signals of any number and length."""
    nodes: list[onnx.NodeProto] = []
    constants: list[TensorProto] = []

    def constant(array: Array) -> str:
        constants.append(numpy_helper.from_array(array, f"constant{len(constants)}"))
        return constants[-1].name

    def quantized(type_: str, name: str, zero: int, step: float) -> str:
        scale, point = constant(np.array(step, np.float32)), constant(np.array(zero, np.int8))
        made = f"{name}.{type_}"
        nodes.append(helper.make_node(type_, [name, scale, point], [made]))
        return made

    value = "x"
    for made, step, dilation in (("first", 0.03, 1), ("y", 0.02, 2)):
        steps = quantized("QuantizeLinear", value, -7, step)
        filters = constant(random.integers(-127, 128, (4, 4, 3)).astype(np.int8))
        reals = [
            quantized("DequantizeLinear", steps, -7, step),
            quantized("DequantizeLinear", filters, 0, 0.003),
        ]
        nodes.append(helper.make_node("Conv", reals, [made], dilations=[dilation]))
        value = made
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["count", 4, length])
        for name, length in (("x", "length"), ("y", "rest"))
    )
    graph = helper.make_graph(nodes, "signals", [x], [y], constants)
    opset = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, ir_version=9, opset_imports=opset)


def test_signals_of_any_length() -> None:
    """The checks of a run's sizes do not change the convolutions."""
    random = np.random.default_rng(1)
    model = signals(random)
    x = random.normal(size=(2, 4, 15)).astype(np.float32)
    answers: Any = ReferenceEvaluator(model).run(None, {"x": x})
    expected = np.asarray(answers[0])
    with crosschip.compile(crosschip.load(model), ["openvino"], cache=False) as compiled:
        np.testing.assert_allclose(compiled(x), expected, atol=1e-5 * np.abs(expected).max())
        with pytest.raises(crosschip.Error, match="CONV_1D"):
            compiled(x[:, :, :4])


def test_blocks_of_bytes_with_zero_points() -> None:
    """ONNX Runtime may quantize the other factor."""
    random = np.random.default_rng(4)
    constants: dict[str, Array] = {
        "weight": random.integers(0, 256, (8, 2, 32)).astype(np.uint8),
        "scale": random.uniform(0.01, 0.02, (8, 2)).astype(np.float32),
        "zeros": random.integers(100, 156, (8, 2)).astype(np.uint8),
    }
    sizes: dict[str, Any] = {"K": 64, "N": 8, "bits": 8, "block_size": 32, "accuracy_level": 4}
    node = helper.make_node(
        "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", **sizes
    )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 8])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    x = random.normal(size=(3, 64)).astype(np.float32)
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=providers)
    (expected,) = session.run(None, {"x": x})
    with crosschip.compile(crosschip.load(model), ["onnxruntime"], cache=False) as compiled:
        np.testing.assert_array_equal(compiled(x), expected)
