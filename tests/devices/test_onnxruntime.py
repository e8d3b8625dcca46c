"""The peculiarities of ONNX Runtime: fusing quantized operations, and its saved programs."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import crosschip
from crosschip.devices.onnxruntime import OnnxRuntimeDevice
from crosschip.devices.onnxruntime.precision import saturates
from crosschip.devices.onnxruntime.saved import read
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Builder, DeviceError, ElementType, Model, Operand, Quantization, TensorType
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.normalization import LayerNormalization
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.quantization import Dequantize, Quantize

FLOAT = TensorProto.FLOAT


def convolution(dtype: ElementType, zero_point: float) -> Model:
    """Quantized in and out, with a pool and a reshape behind."""
    random = np.random.default_rng(0)
    b = Builder()

    def through_integers(reals: Operand, scale: float) -> Operand:
        quantized = b.add(Quantize, reals, 0, (scale,), (zero_point,), dtype)
        return b.add(Dequantize, quantized)

    x = b.input("x", TensorType(ElementType.FLOAT32, (1, 16, 8, 8)))
    stored = random.integers(-100, 100, (32, 16, 3, 3)).astype(np.int8)
    filters = b.add(Dequantize, b.constant(stored, quantization=Quantization((0.02,))))
    y = through_integers(b.add(Conv2D, through_integers(x, 0.05), filters), 0.5)
    pooled = through_integers(b.add(MaxPool2D, y, kernel_shape=(2, 2), strides=(2, 2)), 0.5)
    b.output("y", b.add(Reshape, pooled, (1, -1)))
    return b.build()


@pytest.mark.parametrize(
    ("dtype", "zero_point"),
    [(ElementType.INT8, 0.0), (ElementType.INT8, 3.0), (ElementType.UINT8, 3.0)],
)
def test_quantized_operations_are_fused(dtype: ElementType, zero_point: float) -> None:
    """Although the optimizer is off that moves quantizations past what moves elements."""
    with OnnxRuntimeDevice() as device:
        saved = device.compile(convolution(dtype, zero_point), Options()).save()
    assert saved is not None
    executed = [node.op_type for node in ModelProto.FromString(read(saved)[0].proto).graph.node]
    assert "QLinearConv" in executed
    assert {"Conv", "FusedConv"}.isdisjoint(executed)
    assert executed.count("DequantizeLinear") == 1


def test_sums_are_normalized_in_the_quicker_way() -> None:
    """In two nodes, as the one that ONNX Runtime would make of them takes four times as long."""
    b = Builder()
    x, y = (b.input(name, TensorType(ElementType.FLOAT32, (1, 4, 8))) for name in "xy")
    scale, bias = np.full(8, 2, np.float32), np.ones(8, np.float32)
    b.output("normal", b.add(LayerNormalization, b.add(Add, x, y), scale, bias, 2))
    with OnnxRuntimeDevice() as device:
        saved = device.compile(b.build(), Options()).save()
    assert saved is not None
    nodes = ModelProto.FromString(read(saved)[0].proto).graph.node
    assert {node.op_type for node in nodes} == {"Add", "LayerNormalization"}


def test_bytes_are_multiplied_in_the_quicker_way_where_that_is_exact() -> None:
    """Weights are turned into uint8 only where products of uint8 and int8 saturate."""
    with OnnxRuntimeDevice() as device:
        saved = device.compile(convolution(ElementType.UINT8, 3.0), Options()).save()
    assert saved is not None
    compiled, _ = read(saved)
    kinds = {t.name: t.data_type for t in ModelProto.FromString(compiled.proto).graph.initializer}
    (node,) = (
        n for n in ModelProto.FromString(compiled.proto).graph.node if n.op_type == "QLinearConv"
    )
    wanted = TensorProto.UINT8 if saturates() else TensorProto.INT8
    assert kinds[node.input[3]] == wanted


def test_whether_products_of_bytes_saturate_is_what_the_engine_computes() -> None:
    instructions = Path("/proc/cpuinfo").read_text().split()
    if platform.machine() != "x86_64":
        pytest.skip("only x86 has instructions that saturate")
    assert saturates() == {"avx512_vnni", "avx_vnni"}.isdisjoint(instructions)


@pytest.mark.parametrize("auto_pad", [AutoPad.SAME, AutoPad.SAME_LOWER])
@pytest.mark.parametrize(
    ("kernel", "strides"), [(3, (9, 10)), (1, (3, 4)), (1, (2, 2)), (2, (5, 1))]
)
def test_windows_that_leave_pixels_out_are_not_padded_by_less_than_nothing(
    auto_pad: AutoPad, kernel: int, strides: tuple[int, int]
) -> None:
    random = np.random.default_rng(0)
    image = random.normal(size=(1, 2, 24, 85)).astype(np.float32)
    filter = random.normal(size=(2, 1, kernel, kernel)).astype(np.float32)
    b = Builder("convolution")
    x = b.input("x", TensorType(ElementType.FLOAT32, image.shape))
    b.output("y", b.add(Conv2D, x, filter, auto_pad=auto_pad, strides=strides, group=2))
    model = b.build()
    device = OnnxRuntimeDevice()
    assert device.supports(model.operations[0], Options())
    (found,) = device.compile(model, Options()).run([image])
    (expected,) = ReferenceDevice().compile(model, Options()).run([image])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    if kernel == 3:
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
        by_hand = (windows[:, :, ::9, ::10] * filter[:, 0, None, None]).sum((-1, -2))
        np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-5)


def test_an_old_engine_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "__version__", "1.24.1")
    with pytest.raises(DeviceError, match=r"1\.24\.1 is installed, but 1\.26 or later is needed"):
        OnnxRuntimeDevice()


def test_the_environment_stays() -> None:
    script = """
import os
before = dict(os.environ)
from crosschip.devices.onnxruntime import OnnxRuntimeDevice
from crosschip.devices.onnxruntime.precision import saturates
OnnxRuntimeDevice()
assert dict(os.environ) == before
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)


def _chosen(name: str, nodes: list[NodeProto], output: str) -> GraphProto:
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, FLOAT, None)])


def two_readers() -> ModelProto:
    """A reader for each of two inputs; what the other makes of an input fits no LSTM.

    As exporters write it, with a choice by the sizes of the input in it.
    """
    node = helper.make_node

    def read(x: str, output: str) -> NodeProto:
        return node("LSTM", [x, "w", "r"], [output], hidden_size=2)

    right = [
        node("Squeeze", ["x", "zero"], ["flat"]),
        node("Unsqueeze", ["flat", "zero"], ["three"]),
        read("three", "y0"),
    ]
    longer = _chosen("longer", [node("Unsqueeze", ["x", "zero"], ["more"])], "more")
    same = _chosen("same", [node("Identity", ["x"], ["like"])], "like")
    wrong = [
        node("Shape", ["x"], ["sizes"]),
        node("Gather", ["sizes", "two"], ["size"]),
        node("Equal", ["size", "one"], ["is_one"]),
        node("If", ["is_one"], ["chosen"], then_branch=longer, else_branch=same),
        node("Unsqueeze", ["chosen", "zero"], ["four"]),
        read("four", "y1"),
    ]
    constants = {
        "w": np.full((1, 8, 4), 0.1, np.float32),
        "r": np.full((1, 8, 2), 0.1, np.float32),
        **{name: np.array([number]) for name, number in (("zero", 0), ("one", 1), ("two", 2))},
    }
    graph = helper.make_graph(
        [
            node(
                "If",
                ["first"],
                ["y"],
                then_branch=_chosen("a", right, "y0"),
                else_branch=_chosen("b", wrong, "y1"),
            )
        ],
        "readers",
        [
            helper.make_tensor_value_info("first", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", FLOAT, ["a", "b", "c"]),
        ],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = helper.make_opsetid("", 16)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def test_a_branch_that_fits_no_input_of_these_sizes_is_compiled_all_the_same() -> None:
    model = two_readers()
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 4)
    inputs = {"first": np.array(True), "x": x}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    with crosschip.compile(model, ["onnxruntime"], shapes={"x": x.shape}, cache=False) as compiled:
        np.testing.assert_allclose(compiled.run(inputs)["y"], expected, rtol=1e-6)


@pytest.mark.parametrize("type_", [ElementType.INT64, ElementType.UINT64])
def test_outputs_are_of_the_usual_one_of_numpys_types(type_: ElementType) -> None:
    """NumPy has two types of 64 bits that are equal and not the same."""
    b = Builder("model")
    x = b.input("x", TensorType(type_, (2,)))
    b.output("y", b.add(Concat, [x, x], 0))
    b.output("z", b.add(Concat, [x, x, x], 0))
    program = OnnxRuntimeDevice().compile(b.build(), Options())
    for made in program.run([np.array([1, 2], type_.dtype)]):
        assert made.dtype is type_.dtype
