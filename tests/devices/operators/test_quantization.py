"""Quantization on the engines: all roundings are as defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnxruntime import InferenceSession
from tests.modelling import float32

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Builder, ElementType, Operand, Quantization, TensorType
from crosschip.ops.standard.activation import Relu, Softmax
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.quantization import Dequantize, DynamicQuantize, Quantize

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

TYPES = [ElementType.INT8, ElementType.UINT8, ElementType.INT16, ElementType.UINT16]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("scale", [0.1, 0.25, 1 / 3, 7.3])
def test_ties_and_limits(check: Checker, dtype: ElementType, scale: float) -> None:
    limits = np.iinfo(dtype.dtype)
    zero_point = 0.0 if limits.min else 100.0
    halves = np.arange(-700, 700, dtype=np.float32) / 2 * np.float32(scale)
    beyond = np.array([-1e9, 1e9, limits.min * scale, limits.max * scale], np.float32)
    reals = np.concatenate([halves, beyond])
    check(lambda b, x: b.add(Quantize, x, 0, (scale,), (zero_point,), dtype), reals)
    check(
        lambda b, x: b.add(Dequantize, b.add(Quantize, x, 0, (scale,), (zero_point,), dtype)), reals
    )


@pytest.mark.parametrize("dtype", [ElementType.INT4, ElementType.UINT4], ids=str)
def test_constants_of_four_bits(check: Checker, dtype: ElementType) -> None:
    integers = np.array([[1, 2, 3], [7, 0, 5]])
    scale, zero_point = np.array([0.5, 0.25, 2.0], np.float32), np.array([1, 0, 2])
    b = Builder("bits")
    known = Quantization(tuple(scale.tolist()), tuple(zero_point.astype(float).tolist()), 1)
    given = Operand("w", TensorType(dtype, (2, 3), known), integers.astype(dtype.dtype))
    b.output("y", b.add(Add, b.input("x", float32(2, 3)), b.add(Dequantize, given)))
    x = np.zeros((2, 3), np.float32)
    with crosschip.compile(b.build(), [check.device], cache=False) as compiled:
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], (integers - zero_point) * scale)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_scale_for_each_channel(check: Checker, dtype: ElementType) -> None:
    zero_point = (0.0, 3.0, 7.0)
    for axis, shape in ((1, (2, 3, 4)), (0, (3, 2)), (-1, (2, 3)), (2, (2, 2, 3, 2))):
        check(
            lambda b, x, axis=axis: b.add(
                Dequantize, b.add(Quantize, x, axis, (0.1, 0.02, 3.0), zero_point, dtype)
            ),
            shape,
            rankless_too=False,
        )


@pytest.mark.parametrize("dtype", [*TYPES, ElementType.INT32], ids=str)
def test_dequantized_inputs_and_constants(check: Checker, dtype: ElementType) -> None:
    limits = np.iinfo(dtype.dtype)
    random = np.random.default_rng(8)
    stored = random.integers(limits.min, limits.max, (2, 3), dtype.dtype, endpoint=True)
    stored[0, :2] = limits.min, limits.max
    quantization = Quantization((0.3,), (0 if dtype is ElementType.INT32 else 5,))

    def dequantized(b, x):  # type: ignore[no-untyped-def]
        constant = b.constant(stored, quantization=quantization)
        return b.add(Relu, x), b.add(Dequantize, constant)

    check(dequantized, (2,), rankless_too=False)
    typing = lambda _, array: TensorType(dtype, array.shape, quantization)  # noqa: E731
    check.typed(lambda b, x: b.add(Dequantize, x), stored, typing=typing)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_reals_are_moved_before_something_reads_them(check: Checker, dtype: ElementType) -> None:
    """Engines tend to move the integers instead."""

    def build(b: Builder, x: Operand) -> Operand:
        reals = b.add(Dequantize, b.add(Quantize, x, 0, (0.02,), (3.0,), dtype))
        return b.add(Softmax, b.add(Transpose, b.add(Reshape, reals, (4, 6)), (1, 0)))

    check(build, (2, 3, 4), rankless_too=False)


@pytest.mark.parametrize("dtype", [ElementType.INT8, ElementType.UINT8], ids=str)
def test_a_number_that_is_added_is_not_rounded_to_steps(check: Checker, dtype: ElementType) -> None:
    """OpenVINO rounds an addend that it mistakes for a zero point."""

    def build(b: Builder, x: Operand) -> Operand:
        reals = b.add(Dequantize, b.add(Quantize, x, 0, (0.25,), (10.0,), dtype))
        summed = b.add(Add, reals, np.array([0.25 * 2.53], np.float32))
        stored = b.add(Quantize, summed, 0, (0.25,), (8.0,), dtype)
        return b.add(Relu, b.add(Dequantize, stored))

    check(build, (2, 3, 4, 5), rankless_too=False)


def test_borders_of_images_are_not_left_out(check: Checker) -> None:
    """Quirk `strides-over-padding`, with quantization before the convolution."""

    def build(b: Builder, x: Operand) -> Operand:
        reals = b.add(Dequantize, b.add(Quantize, x, 0, (0.05,), (3.0,), ElementType.UINT8))
        filter = b.constant(np.ones((3, 2, 1, 1), np.float32))
        return b.add(Conv2D, reals, filter, pads=(1, 1, 0, 1), strides=(2, 2))

    check(build, (1, 2, 6, 5), rankless_too=False)


def test_int32_of_many_channels(check: Checker) -> None:
    """Their parameters are long enough to be external constants, each of which must be read."""
    scale = tuple(np.linspace(0.1, 0.9, 300).tolist())
    stored = np.arange(600, dtype=np.int32).reshape(2, 300)

    def build(b: Builder, x: Operand) -> Operand:
        quantization = Quantization(scale, axis=1)
        return b.add(Add, x, b.add(Dequantize, b.constant(stored, quantization=quantization)))

    check(build, (2, 300), rankless_too=False)
    typing = lambda _, array: TensorType(  # noqa: E731
        ElementType.INT32, array.shape, Quantization(scale, axis=1)
    )
    check.typed(lambda b, x: b.add(Dequantize, x), stored, typing=typing)


def test_an_int32_with_a_zero_point_is_declined(check: Checker) -> None:
    stored = np.zeros(3, np.int32)
    typing = lambda _, array: TensorType(ElementType.INT32, array.shape, Quantization((0.1,), (5,)))  # noqa: E731
    check.declines(
        lambda b, x: b.add(Dequantize, x), stored, typing=typing, why="int32 with a zero point"
    )


@pytest.mark.parametrize(("low", "high"), [(-3.0, 5.0), (2.0, 9.0), (-9.0, -4.0), (0.0, 0.0)])
def test_dynamic_quantization_is_the_engines(low: float, high: float) -> None:
    """Compared with ONNX Runtime, as one operator and decomposed."""
    x = np.random.default_rng(4).uniform(low, high, (3, 40)).astype(np.float32)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)
    kinds = (TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8)
    made = [helper.make_tensor_value_info(f"y{i}", kind, None) for i, kind in enumerate(kinds)]
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y0", "y1", "y2"])
    graph = helper.make_graph([node], "g", [value], made)
    proto = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 11)])
    session = InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})
    b = Builder()
    operand = b.input("x", TensorType(ElementType.FLOAT32, x.shape))
    whole = b.add_all(DynamicQuantize, operand)
    parts = b.operations[-1].decomposition(b)  # type: ignore[attr-defined]
    for index, output in enumerate((*whole, *parts)):
        b.output(str(index), output)
    found = ReferenceProgram(b.build()).run([x])
    for index, array in enumerate(found):
        np.testing.assert_array_equal(array, expected[index % 3])
