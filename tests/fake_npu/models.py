"""Small quantized models, in the two ways in which such are written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosschip.ir import Builder, ElementType, Model, Operand, Quantization, TensorType
from crosschip.ir.builder import constant
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.unary import Sin

Array = NDArray[Any]

SHAPE = (1, 3, 10, 8)


def quantization(scale: float, zero_point: int, element_type: ElementType) -> Quantization:
    """One whose zero point is meant for uint8."""
    down = 128 if element_type is ElementType.INT8 else 0
    return Quantization((scale,), (zero_point - down,))


def stored_as(element_type: ElementType, integers: Array) -> Array:
    """Integers from 0 to 255 as bytes, those of int8 moved down by 128."""
    unsigned = integers.astype(np.uint8)
    return (unsigned ^ 128).view(np.int8) if element_type is ElementType.INT8 else unsigned


def weights(element_type: ElementType) -> tuple[Operand, Operand]:
    """Filters [3, 3, 3, 3] and a bias for an input whose scale is 0.05."""
    random = np.random.default_rng(0)
    stored = stored_as(element_type, random.integers(0, 256, (3, 3, 3, 3)))
    filters = constant(stored, "filters", quantization(0.01, 128, element_type))
    bias = random.integers(-900, 900, 3).astype(np.int32)
    return filters, constant(bias, "bias", Quantization((0.05 * float(np.float32(0.01)),)))


def on_bytes(element_type: ElementType) -> Model:
    """A convolution of quantized tensors."""
    b = Builder("on bytes")
    given = TensorType(element_type, SHAPE, quantization(0.05, 120, element_type))
    b.output("y", convolved(b, b.input("x", given), element_type))
    return b.build()


def convolved(b: Builder, x: Operand, element_type: ElementType) -> Operand:
    """A convolution of a quantized tensor that makes one of the same meaning."""
    meaning = quantization(0.05, 120, element_type)
    return b.add(Conv2D, x, *weights(element_type), pads=(1, 1, 1, 1), quantization=meaning)


def between_conversions(element_type: ElementType) -> Model:
    """Float32 operations, each between conversions: what QDQ files hold.

    One result is rounded in two ways, and one tensor leaves as reals and is read by the chip.
    """
    b = Builder("between conversions")
    meaning = quantization(0.05, 120, element_type)
    x = b.input("x", TensorType(ElementType.FLOAT32, SHAPE))
    read = b.add(Dequantize, quantize(b, x, meaning, element_type))
    filters, bias = (b.add(Dequantize, o) for o in weights(element_type))
    real = b.add(Relu6, b.add(Conv2D, read, filters, bias, pads=(1, 1, 1, 1)))
    fine, coarse = (
        b.add(Dequantize, quantize(b, real, quantization(scale, 0, element_type), element_type))
        for scale in (0.025, 0.1)
    )
    b.output("fine", fine)
    total = b.add(Add, fine, coarse)
    b.output("total", b.add(Dequantize, quantize(b, total, meaning, element_type)))
    return b.build()


def with_another_between() -> Model:
    """Bytes that the chip makes, and reads again after another device has worked on them."""
    b = Builder("another between")
    type_ = ElementType.UINT8
    meaning = quantization(0.05, 120, type_)
    made = convolved(b, b.input("x", TensorType(type_, SHAPE, meaning)), type_)
    waves = quantize(b, b.add(Sin, b.add(Dequantize, made)), meaning, type_)
    b.output("y", b.add(Add, made, waves, quantization=meaning))
    return b.build()


def quantize(b: Builder, value: Operand, to: Quantization, element_type: ElementType) -> Operand:
    """The integers for a tensor of reals."""
    zero = tuple(map(float, to.zero_point))
    return b.add(Quantize, value, scale=to.scale, zero_point=zero, dtype=element_type)


def last_layer(element_type: ElementType) -> Model:
    """A product, a sum and an activation with nothing rounded in between, as tools write them."""
    b = Builder("last layer")
    random = np.random.default_rng(0)
    meaning = quantization(0.05, 120, element_type)
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 30)))
    stored = stored_as(element_type, random.integers(0, 256, (30, 8)))
    matrix = constant(stored, "matrix", quantization(0.02, 128, element_type))
    unit = Quantization((0.05 * float(np.float32(0.02)),))
    bias = constant(random.integers(-9000, 9000, 8).astype(np.int32), "bias", unit)
    rows = b.add(Dequantize, quantize(b, x, meaning, element_type))
    product = b.add(MatMul, rows, b.add(Dequantize, matrix))
    total = b.add(Relu, b.add(Add, product, b.add(Dequantize, bias)))
    made = quantize(b, total, quantization(0.5, 3, element_type), element_type)
    b.output("y", b.add(Dequantize, made))
    return b.build()
