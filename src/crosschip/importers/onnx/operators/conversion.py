"""Changes of element type, and to and from quantized types."""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.node import Node, axis_from_front, imports, only
from crosschip.importers.onnx.tensors import element_type
from crosschip.ir import (
    Array,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    UnsupportedError,
    constant,
)
from crosschip.ops.conversion import Cast, Dequantize, Quantize
from crosschip.ops.elementwise import Mul, Sub

_FOLDED = 1024
"""Up to so many elements, a constant is converted at once, so that shapes made of it are known."""


@imports("Cast")
def cast(node: Node) -> Operand:
    node.ignore("saturate", "round_mode")
    target = element_type(node.integer("to"))
    operand = node[0]
    if operand.value is None or operand.value.size > _FOLDED:
        return node.add(Cast, operand, target)
    with np.errstate(all="ignore"):
        return constant(operand.value.astype(target.dtype), node.outputs[0])


@imports("QuantizeLinear")
def quantize_linear(node: Node) -> Operand:
    """The type is that of the zero point, else `output_dtype`, else uint8."""
    node.ignore("saturate")
    only("precision", node.integer("precision", 0), 0)
    asked = node.integer("output_dtype", 0)
    dtype = element_type(asked) if asked else ElementType.UINT8
    zero_point = node.optional(2)
    if zero_point is not None:
        dtype = zero_point.type.element_type
    quantization = _quantization(node)
    return node.add(
        Quantize,
        node[0],
        axis=quantization.axis,
        scale=quantization.scale,
        zero_point=tuple(map(float, quantization.zero_point)),
        dtype=dtype,
    )


@imports("DequantizeLinear")
def dequantize_linear(node: Node) -> Operand:
    """Arithmetic, unless the input is a constant or was quantized in the same way."""
    quantization = _quantization(node)
    result = node[1].type.element_type
    asked = node.integer("output_dtype", 0)
    if asked:
        result = element_type(asked)
    operand = node[0]
    if operand.value is not None:
        operand = constant(operand.value, f"{node.outputs[0]}.quantized", quantization)
    if operand.type.quantization == quantization:
        real = node.add(Dequantize, operand)
    else:
        real = _dequantized(node, operand, quantization)
    return real if result is ElementType.FLOAT32 else node.add(Cast, real, result)


def _dequantized(node: Node, operand: Operand, quantization: Quantization) -> Operand:
    """`(operand - zero_point) * scale`, of an operand whose type says nothing of that."""
    shape: tuple[int, ...] = ()
    if quantization.axis is not None:
        shape = (-1,) + (1,) * (_rank(operand) - 1 - quantization.axis)
    real = node.add(Cast, operand, ElementType.FLOAT32)
    if not quantization.symmetric:
        zero_point = np.array(quantization.zero_point, np.float32)
        real = node.add(Sub, real, zero_point.reshape(shape))
    return node.add(Mul, real, np.array(quantization.scale, np.float32).reshape(shape))


def _quantization(node: Node) -> Quantization:
    """What a node's scale, zero point and axis say, all of them constant."""
    only("block_size", node.integer("block_size", 0), 0)
    axis = node.integer("axis", 1)
    scale = _numbers(node[1], "scale")
    zero_point = _numbers(node[2], "zero point") if node.optional(2) else np.zeros_like(scale)
    try:
        return Quantization(
            tuple(scale.astype(np.float32).ravel().tolist()),
            tuple(map(int, zero_point.ravel().tolist())),
            axis_from_front(axis, _rank(node[0])) if scale.ndim and scale.size > 1 else None,
        )
    except ValueError as error:
        raise ModelError(str(error)) from None


def _numbers(operand: Operand, what: str) -> Array:
    if operand.value is None:
        raise UnsupportedError(f"the {what} must be constant")
    if operand.value.ndim > 1:
        raise UnsupportedError(f"the {what} must be one number, or a list of them along an axis")
    return operand.value


def _rank(operand: Operand) -> int:
    if operand.type.shape is None:
        raise UnsupportedError("the number of axes of input 0 must be known")
    return len(operand.type.shape)
