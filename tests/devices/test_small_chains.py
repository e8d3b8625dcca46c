"""Chains of products of small matrices with few rows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.devices.openvino_layers import noted_layers, said

import crosschip
from crosschip import Builder
from crosschip.ir import Array, ElementType, Operand, TensorType
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Div, Mul
from crosschip.ops.standard.matrix import FullyConnected, MatMul

WIDTH = 16


needs_joint_kernels = pytest.mark.skipif(
    os.environ.get("ONEDNN_MAX_CPU_ISA") == "SSE41",
    reason="OpenVINO makes no kernels of several operations below AVX2",
)


def quantized(rows: int, zero: int) -> onnx.ModelProto:
    """Return two products with quantized results."""
    random = np.random.default_rng(rows)
    constants: dict[str, Any] = {
        "x_s": np.float32(0.0224),
        "x_z": np.uint8(124),
        "y_s": np.float32(0.25),
        "y_z": np.uint8(zero),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "x_s", "x_z"], ["x_q"]),
        helper.make_node("DequantizeLinear", ["x_q", "x_s", "x_z"], ["x_0"]),
    ]
    for layer in range(2):
        weight = random.integers(-128, 128, (WIDTH, WIDTH)).astype(np.int8)
        constants |= {f"w_{layer}": weight, f"s_{layer}": np.float32(0.0035)}
        nodes += [
            helper.make_node("DequantizeLinear", [f"w_{layer}", f"s_{layer}"], [f"r_{layer}"]),
            helper.make_node("MatMul", [f"x_{layer}", f"r_{layer}"], [f"m_{layer}"]),
            helper.make_node("QuantizeLinear", [f"m_{layer}", "y_s", "y_z"], [f"q_{layer}"]),
            helper.make_node("DequantizeLinear", [f"q_{layer}", "y_s", "y_z"], [f"x_{layer + 1}"]),
        ]
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, WIDTH]) for n in ("x", "x_2")
    ]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize("rows", [1, 4, 6, 8])
@pytest.mark.parametrize("device", ["openvino", "onnxruntime", "xla"])
def test_products_of_bytes(device: str, rows: int, zero: int) -> None:
    model = quantized(rows, zero)
    x = np.random.default_rng(0).standard_normal((rows, WIDTH)).astype(np.float32)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    made = crosschip.compile(model, device, cache=False)(x)
    assert np.abs(made - wanted).max() < 1.5 * 0.25
    assert np.mean(np.abs(made - wanted) > 0.1) < 0.05


@pytest.mark.parametrize("rows", [4, 6, 8])
@pytest.mark.parametrize("product", [MatMul, FullyConnected])
def test_the_last_result_is_an_output_and_read(
    product: type[MatMul | FullyConnected], rows: int
) -> None:
    """Quirk `chained-output`."""
    random = np.random.default_rng(rows)
    weights = [random.uniform(0.1, 1, (WIDTH, WIDTH)).astype(np.float32) for _ in range(3)]
    b = Builder("chain")
    x = b.input("x", TensorType(ElementType.FLOAT32, (rows, WIDTH)))
    given = [w.T.copy() if product is FullyConnected else w for w in weights]
    y = b.add(Relu, b.add(product, b.add(Relu, b.add(product, x, given[0])), given[1]))
    b.output("y", y)
    b.output("z", b.add(Div, y, b.add(product, x, given[2])))
    array = random.uniform(0.1, 1, (rows, WIDTH)).astype(np.float32)
    wanted = array @ weights[0] @ weights[1]
    with crosschip.compile(b.build(), "openvino", cache=False) as compiled:
        made = compiled.run({"x": array})
    np.testing.assert_allclose(made["y"], wanted, rtol=1e-5)
    np.testing.assert_allclose(made["z"], wanted / (array @ weights[2]), rtol=1e-5)


def begun(random: np.random.Generator) -> tuple[Builder, Operand, Array]:
    """Return a builder, its input of 4 rows, and the weights of two products."""
    b = Builder("chain")
    x = b.input("x", TensorType(ElementType.FLOAT32, (4, WIDTH)))
    return b, x, random.uniform(0.1, 1, (2, WIDTH, WIDTH)).astype(np.float32)


@needs_joint_kernels
def test_what_is_beside_a_chain_is_computed_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other fused kernels of OpenVINO remain."""
    layers = noted_layers(monkeypatch)
    random = np.random.default_rng(0)
    b, x, weights = begun(random)
    y = b.add(Mul, b.add(Sigmoid, x), b.add(Tanh, x))
    first = b.add(Relu, b.add(MatMul, y, weights[0]))
    b.output("first", first)
    b.output("y", b.add(Relu, b.add(MatMul, first, weights[1])))
    array = random.uniform(0.1, 1, (4, WIDTH)).astype(np.float32)
    wanted = np.tanh(array) / (1 + np.exp(-array)) @ weights[0] @ weights[1]
    made = crosschip.compile(b.build(), "openvino", cache=False).run({"x": array})["y"]
    np.testing.assert_allclose(made, wanted, rtol=1e-5)
    assert len(said(layers, "Subgraph")) == 1
    assert len(said(layers, "FullyConnected")) == 2


@needs_joint_kernels
def test_a_chain_of_reals_is_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of floats are right and stay fused."""
    layers = noted_layers(monkeypatch)
    random = np.random.default_rng(0)
    b, x, weights = begun(random)
    b.output("y", b.add(MatMul, b.add(Relu, b.add(MatMul, x, weights[0])), weights[1]))
    array = random.uniform(-1, 1, (4, WIDTH)).astype(np.float32)
    wanted = np.maximum(array @ weights[0], 0) @ weights[1]
    made = crosschip.compile(b.build(), "openvino", cache=False)(array)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)
    assert len(said(layers, "FullyConnected")) < 2
