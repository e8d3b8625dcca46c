"""Models as TensorFlow Lite files, run by LiteRT."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from tests.exporters.examples import outcomes

import crosschip as cc
from crosschip.exporters import export
from crosschip.exporters import tflite as exporter
from crosschip.flatbuffer import read
from crosschip.flatbuffer.schemas import tflite as schema
from crosschip.flatbuffer.schemas.tflite.enumerations import BuiltinOperator
from crosschip.flatbuffer.schemas.tflite.enumerations import TensorType as Code
from crosschip.ir import Array, Builder, ElementType, If, Model, Operand, Quantization, TensorType
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.joining import Concat, Split, Stack
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.reduction import ReduceL2, ReduceMean
from crosschip.ops.standard.resizing import ResizeLinear

FLOAT32 = ElementType.FLOAT32

REJECTED = {
    # Constants without elements, which LiteRT takes for values that are computed.
    *(("FILL", 2), ("RANGE", 3), ("SHAPE", 2)),
    # NaN becomes any integer.
    *(("ACOSH", 3), ("POW", 3)),
}


def test_examples() -> None:
    _check(every=4, first=1, written=210)


@pytest.mark.nightly
def test_all_examples() -> None:
    _check(every=1, first=0, written=880)


def _check(every: int, first: int, written: int) -> None:
    results = [
        outcome
        for outcome in outcomes(exporter, {}, every, first)
        if (outcome.operator, outcome.number) not in REJECTED
    ]
    assert [str(each) for each in results if each.fault] == []
    assert sum(not each.refusal for each in results) >= written


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def codes(path: Path) -> Counter[str]:
    """Return how often each operator is in a file."""
    model = read(schema.Model, path.read_bytes(), str(path), (schema.IDENTIFIER,))
    names = [BuiltinOperator(code.builtin_code).name for code in model.operator_codes]
    return Counter(names[each.opcode_index] for each in model.subgraphs[0].operators)


def network(b: Builder, x: Operand) -> Operand:
    """Add a network of convolutions with everything that is between them."""
    x = b.add(Relu, b.add(Conv2D, x, random(8, 3, 3, 3), random(8), strides=(2, 2), pads=(1,) * 4))
    y = b.add(Conv2D, x, random(8, 1, 3, 3), pads=(1,) * 4, group=8)
    x = b.add(
        Mul, b.add(Add, x, y), b.add(Sigmoid, b.add(ReduceMean, y, axes=(2, 3), keepdim=True))
    )
    first, second = b.add_all(Split, x, 1, (4, 4))
    halves = [
        b.add(MaxPool2D, first, kernel_shape=(2, 2), strides=(2, 2)),
        b.add(AveragePool2D, second, kernel_shape=(2, 2), strides=(2, 2)),
    ]
    x = b.add(Concat, halves, 1)
    x = b.add(Pad, x, (0, 0, 0, 0, 1, 0, 0, 1))
    x = b.add(ResizeLinear, x, shape=(10, 10))
    x = b.add(Conv2DTranspose, x, random(8, 6, 2, 2), strides=(2, 2))
    x = b.add(Reshape, b.add(ReduceMean, x, axes=(2, 3), keepdim=True), (1, 6))
    return b.add(FullyConnected, x, random(5, 6), random(5), fuse_code=1)


def test_no_transposition_is_left_in_a_network_of_convolutions(tmp_path: Path) -> None:
    b = Builder("network")
    b.output("y", network(b, b.input("x", TensorType(FLOAT32, (1, 3, 16, 16)))))
    path = tmp_path / "model.tflite"
    export(b.build(), path)
    found = codes(path)
    assert found["TRANSPOSE"] == 1  # of the input
    assert found["CONV_2D"] == found["DEPTHWISE_CONV_2D"] == found["TRANSPOSE_CONV"] == 1
    assert found["RELU"] == 0  # they are fused


def test_names_and_signature(tmp_path: Path) -> None:
    b = Builder("names")
    x = b.input("left", TensorType(FLOAT32, (2, 3)))
    y = b.input("right", TensorType(FLOAT32, (2, 3)))
    b.output("sum", b.add(Add, x, y))
    path = tmp_path / "model.tflite"
    export(b.build(), path)
    interpreter = Interpreter(str(path))
    assert interpreter.get_signature_list() == {
        "serving_default": {"inputs": ["left", "right"], "outputs": ["sum"]}
    }
    run = interpreter.get_signature_runner()
    arrays = {"left": random(2, 3), "right": random(3, 2).reshape(2, 3)}
    np.testing.assert_array_equal(run(**arrays)["sum"], arrays["left"] + arrays["right"])


def test_additions_become_biases(tmp_path: Path) -> None:
    b = Builder("product")
    x = b.input("x", TensorType(FLOAT32, (2, 5, 4)))
    b.output("y", b.add(Relu, b.add(Add, b.add(MatMul, x, random(4, 6)), random(6))))
    path = tmp_path / "model.tflite"
    export(b.build(), path)
    assert codes(path) == {"FULLY_CONNECTED": 1}


def quantized_network(element_type: ElementType) -> Model:
    """A convolution, an activation and an addition with conversions around each."""
    offset = 0 if element_type is ElementType.INT8 else 128
    b = Builder("quantized")
    x = b.input("x", TensorType(FLOAT32, (1, 3, 8, 8)))

    def rounded(value: Operand, scale: float) -> Operand:
        stored = b.add(
            Quantize, value, scale=(scale,), zero_point=(float(offset + 3),), dtype=element_type
        )
        return b.add(Dequantize, stored)

    weights = np.random.default_rng(0).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    scales = Quantization((0.01, 0.02, 0.03, 0.01), axis=0)
    filter = b.add(Dequantize, b.constant(weights, quantization=scales))
    x = rounded(x, 0.02)
    y = rounded(b.add(Relu, b.add(Conv2D, x, filter, random(4), pads=(1,) * 4)), 0.1)
    b.output("y", rounded(b.add(Add, y, y), 0.2))
    return b.build()


@pytest.mark.parametrize("element_type", [ElementType.INT8, ElementType.UINT8])
def test_quantized_operations_are_fused(tmp_path: Path, element_type: ElementType) -> None:
    path = tmp_path / "model.tflite"
    export(quantized_network(element_type), path)
    found = codes(path)
    assert found["QUANTIZE"] + found["DEQUANTIZE"] == 2  # of the input and the output
    model = read(schema.Model, path.read_bytes(), str(path))
    (convolution,) = (
        each
        for each in model.subgraphs[0].operators
        if model.operator_codes[each.opcode_index].builtin_code == BuiltinOperator.CONV_2D
    )
    assert convolution.inputs is not None
    tensors = [model.subgraphs[0].tensors[index] for index in convolution.inputs]
    assert [tensor.type for tensor in tensors] == [Code.INT8, Code.INT8, Code.INT32]
    filter = tensors[1].quantization
    assert filter is not None
    assert filter.scale is not None
    assert len(filter.scale) == 4


def test_float16(tmp_path: Path) -> None:
    b = Builder("half")
    x = b.input("x", TensorType(ElementType.FLOAT16, (2, 3)))
    b.output("y", b.add(Mul, x, b.add(Sigmoid, x)))
    path = tmp_path / "model.tflite"
    export(b.build(), path)
    assert codes(path)["CAST"] == 2
    with cc.compile(b.build(), ["reference"], cache=False) as compiled:
        right = compiled.run({"x": random(2, 3).astype(np.float16)})["y"]
    interpreter = Interpreter(str(path))
    result = interpreter.get_signature_runner()(x=random(2, 3).astype(np.float16))["y"]
    np.testing.assert_allclose(result, right, rtol=2e-3)


def branch(operator: type[Add] | type[Mul]) -> Model:
    b = Builder("branch")
    x = b.input("x", TensorType(FLOAT32, (2, 3)))
    b.output("y", b.add(operator, x, x))
    return b.build()


def test_branches_are_subgraphs(tmp_path: Path) -> None:
    b = Builder("branches")
    condition = b.input("condition", TensorType(ElementType.BOOL, (1,)))
    x = b.input("x", TensorType(FLOAT32, (2, 3)))
    choice = If.of("choice", condition, [x], [branch(Add), branch(Mul)])
    b.output("y", b.insert(choice)[0])
    path = tmp_path / "model.tflite"
    export(b.build(), path)
    run = Interpreter(str(path)).get_signature_runner()
    array = random(2, 3)
    for chosen, right in ((True, array + array), (False, array * array)):
        result = run(condition=np.array([chosen]), x=array)["y"]
        np.testing.assert_array_equal(result, right)


@pytest.mark.parametrize(("shape", "reshapes"), [((3, 1, 64), 0), ((2, 3, 64), 3), ((2, 48), 0)])
def test_transforms_of_real_signals(tmp_path: Path, shape: tuple[int, ...], reshapes: int) -> None:
    """Lengths that are no powers of two stay products."""
    length = shape[-1]
    waves = np.fft.rfft(np.eye(length))
    b = Builder()
    x = b.input("x", TensorType(FLOAT32, shape))
    parts = [b.add(MatMul, x, part.astype(np.float32)) for part in (waves.real, waves.imag)]
    norm = b.add(ReduceL2, b.add(Stack, parts=parts, axis=-1), axes=(-1,), keepdim=False)
    for name, operand in zip(("real", "imaginary", "norm"), (*parts, norm), strict=True):
        b.output(name, operand)
    path = tmp_path / "model.tflite"
    export(b.build(), path)
    counts = codes(path)
    assert counts["RFFT2D"] == counts["REAL"] == counts["IMAG"] == (length == 64)
    assert counts["RESHAPE"] == reshapes
    assert not counts["SUM"]
    interpreter = Interpreter(model_content=path.read_bytes())
    signal = random(*shape)
    outputs = interpreter.get_signature_runner()(x=signal)
    expected = np.fft.rfft(signal)
    np.testing.assert_allclose(outputs["real"], expected.real, atol=1e-4)
    np.testing.assert_allclose(outputs["imaginary"], expected.imag, atol=1e-4)
    np.testing.assert_allclose(outputs["norm"], np.abs(expected), atol=1e-4)
