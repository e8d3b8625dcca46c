"""Integers, and other narrow numbers, that stand for reals.

Where scales and zero points are constant, an operand's type says what its integers stand for.
Elsewhere it is arithmetic.
"""

from __future__ import annotations

import numpy as np

from crosschip.importers.onnx.facts import rank_of, static_shape_of
from crosschip.importers.onnx.node import Node, axis_from_front, imports
from crosschip.importers.onnx.operators.conversion import converted
from crosschip.importers.onnx.operators.convolution import convolution_of
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
from crosschip.ir.types import QUANTIZABLE
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Round

FLOAT32 = ElementType.FLOAT32

_INTEGERS = QUANTIZABLE - {known for known in QUANTIZABLE if known.value.startswith("float")}


@imports("QuantizeLinear")
def quantize_linear(node: Node) -> Operand:
    """The type is that of the zero point, else `output_dtype`, else uint8."""
    saturate = node.flag("saturate")
    asked, precise = node.integer("output_dtype"), node.integer("precision")
    dtype = element_type(asked) if asked else ElementType.UINT8
    axis, block = node.integer("axis"), node.integer("block_size")
    zero_point = node.optional(2)
    if zero_point is not None:
        dtype = zero_point.type.element_type
    operand, scale = node[0], node[1]
    plain = operand.type.element_type is scale.type.element_type is FLOAT32
    if plain and not precise and not block and dtype in _INTEGERS:
        quantization = _quantization(node, axis)
        if quantization is not None:
            return node.add(
                Quantize,
                operand,
                axis=quantization.axis,
                scale=quantization.scale,
                zero_point=tuple(map(float, quantization.zero_point)),
                dtype=dtype,
            )
    precision = element_type(precise) if precise else scale.type.element_type
    along = _Along(node, axis, block)
    steps = node.add(
        Div, _cast(node, operand, precision), along.spread(_cast(node, scale, precision))
    )
    zero = None if zero_point is None else along.spread(_cast(node, zero_point, FLOAT32))
    return _stored(node, _cast(node, steps, FLOAT32), zero, dtype, saturate=saturate)


@imports("DequantizeLinear")
def dequantize_linear(node: Node) -> Operand:
    """Arithmetic, unless the input is a constant or was quantized in the same way."""
    asked = node.integer("output_dtype")
    result = element_type(asked) if asked else node[1].type.element_type
    axis, block = node.integer("axis"), node.integer("block_size")
    operand = node[0]
    if not block and operand.type.element_type in _INTEGERS:
        quantization = _quantization(node, axis)
        if quantization is not None:
            if operand.value is not None:
                operand = constant(operand.value, f"{node.outputs[0]}.quantized", quantization)
            if operand.type.quantization == quantization:
                return _cast(node, node.add(Dequantize, operand), result)
    along = _Along(node, axis, block)
    real = _cast(node, raw(node, operand), FLOAT32)
    zero_point = node.optional(2)
    if zero_point is not None:
        real = node.add(Sub, real, along.spread(_cast(node, zero_point, FLOAT32)))
    scaled = node.add(Mul, real, along.spread(_cast(node, node[1], FLOAT32)))
    return converted(node, scaled, result)


@imports("MatMulInteger")
def matmul_integer(node: Node) -> Operand:
    zero_point = node.optional(2)
    rows = None if zero_point is None else _rows(node, zero_point)
    left = _centred(node, node[0], rows)
    return node.add(MatMul, left, _centred(node, node[1], node.optional(3)))


@imports("QLinearMatMul")
def qlinear_matmul(node: Node) -> Operand:
    left = _centred(node, node[0], _rows(node, node[2]))
    product = node.add(MatMul, left, _centred(node, node[3], node[5]))
    scale = node.add(
        Div,
        node.add(Mul, _cast(node, _rows(node, node[1]), FLOAT32), _cast(node, node[4], FLOAT32)),
        _cast(node, node[6], FLOAT32),
    )
    steps = node.add(Mul, node.add(Cast, product, FLOAT32), scale)
    zero = node.add(Cast, node[7], FLOAT32)
    return _stored(node, steps, zero, node[7].type.element_type)


@imports("ConvInteger")
def conv_integer(node: Node) -> Operand:
    """Summed up in float64, where no sum of products of bytes is rounded."""
    sums = convolution_of(
        node,
        _exact(node, node[0], node.optional(2)),
        _exact(node, node[1], _channels(node, node.optional(3), node[1])),
    )
    return node.add(Cast, sums, ElementType.INT32)


@imports("QLinearConv")
def qlinear_conv(node: Node) -> Operand:
    filter, bias = node[3], node.optional(8)
    sums = convolution_of(
        node,
        _exact(node, node[0], node[2]),
        _exact(node, filter, _channels(node, node[5], filter)),
        None if bias is None else node.add(Cast, bias, ElementType.FLOAT64),
    )
    scale = node.add(Mul, node[1], _channels(node, node[4], filter, output=True))
    steps = node.add(Mul, node.add(Cast, sums, FLOAT32), node.add(Div, scale, node[6]))
    zero = node.add(Cast, node[7], FLOAT32)
    return _stored(node, steps, zero, node[7].type.element_type)


def raw(node: Node, operand: Operand) -> Operand:
    """An operand's integers, whatever they stand for."""
    quantization = operand.type.quantization
    if quantization is None:
        return operand
    if operand.value is not None:
        return constant(operand.value, operand.name)
    shape: tuple[int, ...] = ()
    if quantization.axis is not None:
        shape = (-1,) + (1,) * (rank_of(operand) - 1 - quantization.axis)
    real = node.add(Dequantize, operand)
    steps = node.add(Div, real, np.array(quantization.scale, np.float32).reshape(shape))
    zero_point = np.array(quantization.zero_point, np.float32).reshape(shape)
    whole = node.add(Add, node.add(Round, steps), zero_point)
    return node.add(Cast, whole, operand.type.element_type)


class _Along:
    """Scales and zero points along an input: one, one an index of an axis, or in blocks."""

    def __init__(self, node: Node, axis: int, block: int) -> None:
        self._node = node
        self._axis = axis
        self._block = block
        if block < 0:
            raise ModelError(f"block_size {block} is negative")

    def spread(self, operand: Operand) -> Operand:
        """The numbers in a shape that broadcasts to the input's."""
        node, shape = self._node, operand.type.static_shape
        if shape is None:
            return self._along_axis(self._counted(operand))
        if self._block:
            return self._repeated(operand, shape)
        if len(shape) == 0 or shape == (1,):
            return node.add(Reshape, operand, ()) if shape else operand
        if len(shape) != 1:
            raise ModelError(f"{operand.name!r} has {len(shape)} axes, but no block_size is given")
        return self._along_axis(operand)

    def _along_axis(self, operand: Operand) -> Operand:
        rank = rank_of(self._node[0])
        axis = axis_from_front(self._axis, rank)
        return self._node.add(Reshape, operand, (-1,) + (1,) * (rank - 1 - axis))

    def _counted(self, operand: Operand) -> Operand:
        """A list of open size; refused when it runs unless it is as long as the axis."""
        node, shape = self._node, operand.type.shape
        if self._block or shape is None or len(shape) != 1:
            raise UnsupportedError(f"the shape of {operand.name!r} must be known")
        axis = axis_from_front(self._axis, rank_of(node[0]))
        if shape == (shape_of(node[0])[axis],):
            return operand
        size = node.add(Slice, node.add(ShapeOf, node[0]), (0,), (axis,), (axis + 1,))
        return node.add(Reshape, operand, size)

    def _repeated(self, operand: Operand, shape: tuple[int, ...]) -> Operand:
        """Each number as often as a block is long."""
        node, whole = self._node, static_shape_of(self._node[0])
        axis = axis_from_front(self._axis, len(whole))
        if len(shape) != len(whole):
            raise ModelError(f"{operand.name!r} has {len(shape)} axes, but must have {len(whole)}")
        split = (*shape[: axis + 1], self._block, *shape[axis + 1 :])
        blocks = node.add(Expand, node.add(Unsqueeze, operand, (axis + 1,)), split)
        joined = (*shape[:axis], shape[axis] * self._block, *shape[axis + 1 :])
        flat = node.add(Reshape, blocks, joined)
        return node.add(Slice, flat, (axis,), (0,), (whole[axis],))


def _stored(
    node: Node,
    steps: Operand,
    zero_point: Operand | None,
    dtype: ElementType,
    *,
    saturate: bool = True,
) -> Operand:
    """Multiples of a scale as the numbers that stand for them: rounded, shifted, clipped."""
    if dtype not in _INTEGERS:
        shifted = steps if zero_point is None else node.add(Add, steps, zero_point)
        return converted(node, shifted, dtype, saturate=saturate)
    whole = node.add(Round, steps)
    if zero_point is not None:
        whole = node.add(Add, whole, zero_point)
    low, high = limits(dtype)
    return node.add(Cast, node.add(Clip, whole, float(low), float(high)), dtype)


def _quantization(node: Node, axis: int) -> Quantization | None:
    """The quantization of a node; `None` if scale and zero point are not constant, or none."""
    scale, zero_point = node[1], node.optional(2)
    if scale.value is None or scale.type.element_type is not FLOAT32:
        return None
    if zero_point is not None and zero_point.value is None:
        return None
    if not scale.value.size:
        return None
    zeros = np.zeros(1) if zero_point is None or zero_point.value is None else zero_point.value
    _check_list(scale.value, "scale")
    _check_list(zeros, "zero point")
    along = scale.value.ndim and scale.value.size > 1
    try:
        return Quantization(
            tuple(scale.value.ravel().tolist()),
            tuple(map(int, zeros.ravel().tolist())),
            axis_from_front(axis, rank_of(node[0])) if along else None,
        )
    except ValueError as error:
        raise ModelError(str(error)) from None


def _check_list(values: Array, what: str) -> None:
    if values.ndim > 1:
        raise UnsupportedError(f"the {what} must be one number, or a list of them along an axis")


def _centred(node: Node, operand: Operand, zero_point: Operand | None) -> Operand:
    """The differences from the zero point, in int32."""
    wide = node.add(Cast, raw(node, operand), ElementType.INT32)
    if zero_point is None:
        return wide
    return node.add(Sub, wide, node.add(Cast, zero_point, ElementType.INT32))


def _exact(node: Node, operand: Operand, zero_point: Operand | None) -> Operand:
    return node.add(Cast, _centred(node, operand, zero_point), ElementType.FLOAT64)


def _rows(node: Node, operand: Operand) -> Operand:
    """A number a row of a matrix, so that it broadcasts to the matrix."""
    if operand.type.shape is None or len(operand.type.shape) != 1:
        return operand
    return node.add(Unsqueeze, operand, (-1,))


def _channels(
    node: Node, operand: Operand | None, filter: Operand, *, output: bool = False
) -> Operand | None:
    """A number an output channel, so that it broadcasts to the filter, or to what it makes."""
    if operand is None or operand.type.static_shape in ((), (1,)):
        return operand if operand is None else node.add(Reshape, operand, ())
    return node.add(Reshape, operand, (-1,) + (1,) * (rank_of(filter) - 1 - output))


def _cast(node: Node, operand: Operand, dtype: ElementType) -> Operand:
    return operand if operand.type.element_type is dtype else node.add(Cast, operand, dtype)
