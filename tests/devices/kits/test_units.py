"""Quantized operations spelled out with conversions around float32 operators."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.units import merge_overlapping, submodel, units
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Builder, ElementType, Model, Operand, Quantization, TensorType
from crosschip.ops.standard.activation import Relu, Softmax
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Split
from crosschip.ops.standard.quantization import Dequantize, Quantize

SCALE = Quantization((0.1,), (3,))
IMAGE = TensorType(ElementType.UINT8, (1, 2, 4, 4), SCALE)


def quantized(b: Builder, reals: Operand) -> Operand:
    return b.add(Quantize, reals, scale=[0.1], zero_point=[3.0], dtype=ElementType.UINT8)


def names(model: Model) -> list[list[str]]:
    return [[member.type for member in unit.operations] for unit in units(model)]


def conv(b: Builder, image: Operand) -> Operand:
    weights = b.constant(np.ones((2, 2, 1, 1), np.int8), quantization=Quantization((0.5,)))
    return b.add(Conv2D, b.add(Dequantize, image), b.add(Dequantize, weights))


def test_an_operator_between_conversions_is_one_with_its_activation() -> None:
    b = Builder("m")
    b.output("y", quantized(b, b.add(Relu, conv(b, b.input("x", IMAGE)))))
    model = b.build()
    assert names(model) == [["DEQUANTIZE", "DEQUANTIZE", "CONV_2D", "RELU", "QUANTIZE"]]
    (whole,) = (unit.whole for unit in units(model))
    image, weights = whole.inputs[:2]
    assert image is model.inputs["x"]
    assert weights is not None
    assert weights.type.element_type is ElementType.INT8
    assert whole.outputs == tuple(model.outputs.values())


def test_what_is_read_as_a_real_is_none() -> None:
    b = Builder("m")
    reals = conv(b, b.input("x", IMAGE))
    b.output("y", quantized(b, reals))
    b.output("z", b.add(Softmax, reals))
    assert names(b.build()) == []


def test_what_reads_a_real_is_none() -> None:
    b = Builder("m")
    x = b.add(Dequantize, b.input("x", IMAGE))
    real = b.input("real", TensorType(ElementType.FLOAT32, (1, 2, 4, 4)))
    b.output("y", quantized(b, b.add(Add, x, real)))
    assert names(b.build()) == []


def test_a_real_output_of_the_model_is_none() -> None:
    b = Builder("m")
    reals = conv(b, b.input("x", IMAGE))
    b.output("reals", reals)
    b.output("y", quantized(b, reals))
    assert names(b.build()) == []


def test_conversions_may_be_in_several_units() -> None:
    b = Builder("m")
    x = b.add(Dequantize, b.input("x", IMAGE))
    b.output("y", quantized(b, b.add(Softmax, x)))
    b.output("z", quantized(b, b.add(Add, x, x)))
    assert names(b.build()) == [
        ["DEQUANTIZE", "SOFTMAX", "QUANTIZE"],
        ["DEQUANTIZE", "ADD", "QUANTIZE"],
    ]


def test_every_output_counts() -> None:
    b = Builder("m")
    x = b.add(Dequantize, b.input("x", IMAGE))
    first, second = b.add_all(Split, x, split=[1, 1], axis=1)
    b.output("y", quantized(b, first))
    b.output("z", second)
    assert names(b.build()) == []


def test_parts_that_share_something_are_merge_overlapping() -> None:
    assert merge_overlapping([]) == []
    assert merge_overlapping([[3, 1], [5], [2, 4], [4, 1]]) == [[5], [1, 2, 3, 4]]


def test_a_submodel_keeps_the_order_of_its_model() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2,)))
    first = b.add(Relu, x)
    second = b.add(Add, first, np.array([1, 2], np.float32))
    b.output("y", b.add(Add, second, first))
    model = b.build()
    one, two, three = model.operations
    part = submodel(model, [three, one, two])
    assert list(part.operations) == [one, two, three]
    (output,) = ReferenceDevice().compile(part, Options()).run([np.array([-1, 3], np.float32)])
    assert output.tolist() == [1, 8]
