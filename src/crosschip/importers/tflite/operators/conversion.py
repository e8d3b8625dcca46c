"""Conversions of element types and of quantization."""

from __future__ import annotations

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import FakeQuantOptions
from crosschip.importers.tflite.node import Node, imports
from crosschip.importers.tflite.operators.fourier import complex_part
from crosschip.ir import ElementType, ModelError, Operand
from crosschip.ops.standard.arithmetic import Add, Clip, Mul, Sub
from crosschip.ops.standard.conversion import BitCast, Cast
from crosschip.ops.standard.quantization import Quantize, parameters
from crosschip.ops.standard.unary import Floor


@imports("CAST")
def cast(node: Node) -> Operand:
    """Import a conversion of elements, of a quantized tensor's integers, or of real parts."""
    if node.is_complex(0):
        return node.add(Cast, complex_part(node, 0), node.output().element_type)
    return node.add(Cast, node.integers(node[0]), node.output().element_type)


@imports("BITCAST")
def bitcast(node: Node) -> Operand:
    return node.add(BitCast, node.integers(node[0]), node.output().element_type)


@imports("QUANTIZE")
def quantize(node: Node) -> Operand:
    """Import a quantization, also of a tensor that is quantized otherwise."""
    type_ = node.output()
    if type_.quantization is None:
        raise ModelError("its output declares no scale")
    return node.add(
        Quantize,
        node[0],
        **parameters(type_.quantization),
        dtype=type_.element_type,
        quantization=type_.quantization,
    )


@imports("DEQUANTIZE")
def dequantize(node: Node) -> Operand:
    if node[0].type.element_type is ElementType.FLOAT16:
        return node.add(Cast, node[0], ElementType.FLOAT32)
    return node.dequantized(node[0])


@imports("DENSIFY")
def densify(node: Node) -> Operand:
    """Return the tensor, since sparse constants are dense when they are read."""
    return node[0]


@imports("FAKE_QUANT")
def fake_quant(node: Node) -> Operand:
    """Import the rounding of reals to the values of a quantized range, halves upwards.

    The range is shifted so that 0 is one of its values. Source: LiteRT's FakeQuant kernel.
    """
    options = node.options(FakeQuantOptions)
    low, high = (1 if options.narrow_range else 0), 2**options.num_bits - 1
    least, most = np.float32(options.min), np.float32(options.max)
    if not least < most:
        raise ModelError(f"its range from {least} to {most} is empty")
    scale = np.float32((most - least) / np.float32(high - low))
    zero = np.clip(np.floor(np.float32(low) - least / scale + np.float32(0.5)), low, high)
    start, end = np.float32((low - zero) * scale), np.float32((high - zero) * scale)
    clamped = node.add(Clip, node[0], float(start), float(end))
    offset = node.add(Sub, clamped, node.constant(np.array(start)))
    inverse = node.constant(np.array(np.float32(1) / scale))
    steps = node.add(Add, node.add(Mul, offset, inverse), node.constant(np.array(0.5, np.float32)))
    rounded = node.add(Mul, node.add(Floor, steps), node.constant(np.array(scale)))
    return node.add(Add, rounded, node.constant(np.array(start)))


@imports("custom.NumericVerify")
def numeric_verify(node: Node) -> Operand:
    """Import the difference of a quantized tensor and the reals that it should represent."""
    return node.add(Sub, node.dequantized(node[0]), node[1])
