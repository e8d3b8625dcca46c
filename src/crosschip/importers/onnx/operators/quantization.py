"""Quantization.

With constant scale and zero point, the quantization becomes part of an operand's type; otherwise it
is computed by arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosschip.importers.facts import rank_of, shape_of, static_shape_of
from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, axis_from_front, imports
from crosschip.importers.onnx.operators.conversion import add_cast
from crosschip.importers.onnx.tensors import element_type
from crosschip.importers.onnx.windows import channels_last
from crosschip.ir import (
    Array,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    UnsupportedError,
    constant,
)
from crosschip.ir.types import FLOATS, QUANTIZABLE
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mod, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.quantization import (
    Dequantize,
    DequantizeBlocks,
    DynamicQuantize,
    Quantize,
    Reinterpret,
    parameters,
)
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Round

FLOAT32 = ElementType.FLOAT32

_NEWEST = 25
"""An opset in which ONNX's operators support all quantized types."""

_SCALES = FLOATS - {ElementType.FLOAT64}
_INTEGERS = frozenset(dtype for dtype in QUANTIZABLE if not dtype.value.startswith("float"))


@imports("QuantizeLinear")
def quantize_linear(node: Node) -> Operand:
    """Import QuantizeLinear; the type is the zero point's, else `output_dtype`, else uint8."""
    saturate = node.flag("saturate")
    code, precise = node.integer("output_dtype"), node.integer("precision")
    dtype = element_type(code) if code else ElementType.UINT8
    axis, block = node.integer("axis"), node.integer("block_size")
    zero_point = node.optional(2)
    if zero_point is not None:
        dtype = zero_point.type.element_type
    operand, scale = node[0], node[1]
    plain = operand.type.element_type is scale.type.element_type is FLOAT32
    if plain and not precise and not block and dtype in _INTEGERS:
        quantization = _quantization(node, axis)
        if quantization is not None:
            return node.add(Quantize, operand, **parameters(quantization), dtype=dtype)
    precision = element_type(precise) if precise else scale.type.element_type
    params = _Parameters(node, axis, block)
    steps = node.add(
        Div, _cast(node, operand, precision), params.broadcast(_cast(node, scale, precision))
    )
    zero = None if zero_point is None else params.broadcast(_cast(node, zero_point, FLOAT32))
    return _quantize(node, _cast(node, steps, FLOAT32), zero, dtype, saturate=saturate)


@imports("DequantizeLinear")
def dequantize_linear(node: Node) -> Operand:
    """Import DequantizeLinear, by arithmetic unless scale and zero point are constant."""
    code = node.integer("output_dtype")
    result = element_type(code) if code else node[1].type.element_type
    axis, block = node.integer("axis"), node.integer("block_size")
    operand = node[0]
    if not block and operand.type.element_type in _INTEGERS:
        quantization = _quantization(node, axis)
        if quantization is not None:
            real = node.add(Dequantize, with_quantization(node, operand, quantization))
            return _cast(node, real, result)
    if block and operand.type.element_type in _INTEGERS and node[1].type.element_type in _SCALES:
        real = node.add(DequantizeBlocks, operand, node[1], node.optional(2), axis, block)
        return _cast(node, real, result)
    return add_cast(node, _dequantize(node, _Parameters(node, axis, block)), result)


@imports(f"{DOMAIN}.GatherBlockQuantized")
def gather_block_quantized(node: Node) -> Operand:
    """Import GatherBlockQuantized: gather stored rows, then dequantize only those.

    The inputs are the integers, possibly packed in bytes, the indices, scales and zero points.
    """
    table, where, scale, zero_point = node[0], node[1], node[2], node.optional(3)
    rank = rank_of(table)
    quantize_axis = axis_from_front(node.integer("quantize_axis", 1), rank)
    gather_axis = axis_from_front(node.integer("gather_axis", 0), rank)
    bits, block = node.integer("bits", 4), node.integer("block_size", 128)
    if gather_axis == quantize_axis or gather_axis == rank - 1:
        raise UnsupportedError(f"rows along axis {gather_axis} of {rank} cannot be expressed")
    middles = {ElementType.INT4: 8, ElementType.UINT4: 0, ElementType.UINT8: 2 ** (bits - 1)}
    if table.type.element_type not in middles or (bits != 4 and bits != 8):
        raise UnsupportedError(f"{bits} bits of {table.type.element_type} cannot be expressed")
    size = None if bits == 8 else static_shape_of(scale)[-1]
    if zero_point is None:
        zeros = np.full(static_shape_of(scale), middles[table.type.element_type])
    else:
        zeros = _zero_points_as_bytes(zero_point, bits, size)
    bytes_ = node.constant(zeros.astype(np.uint8))
    rows, scales, shifts = (
        node.add(Gather, part, where, axis=gather_axis)
        for part in (_pack_pairs(node, table), scale, bytes_)
    )
    if bits == 4:
        rows = _unpack_pairs(node, rows)
    result_axis = (
        quantize_axis + rank_of(where) - 1 if quantize_axis > gather_axis else quantize_axis
    )
    return node.add(DequantizeBlocks, rows, scales, shifts, result_axis, block)


def _zero_points_as_bytes(zero_point: Operand, bits: int, size: int | None) -> Array:
    """Return constant zero points unpacked to bytes; int4 is shifted by 8."""
    if zero_point.value is None:
        raise UnsupportedError("zero points that are computed cannot be expressed")
    if zero_point.type.element_type is ElementType.INT4:
        return zero_point.value.astype(np.int8) + 8
    if zero_point.type.element_type is ElementType.UINT8 and bits == 4:
        parts = zero_point.value[..., None] >> np.array([0, 4], np.uint8) & np.uint8(15)
        return np.asarray(parts.reshape(*zero_point.value.shape[:-1], -1)[..., :size])
    return zero_point.value


def _pack_pairs(node: Node, table: Operand) -> Operand:
    """Pack a constant table of 4-bit integers, two per byte; int4 is shifted by 8."""
    if table.type.element_type is ElementType.UINT8:
        return table
    if table.value is None or table.value.shape[-1] % 2:
        raise UnsupportedError("rows that are computed, or odd, cannot be expressed")
    signed = table.type.element_type is ElementType.INT4
    numbers = (table.value.astype(np.int8) + 8 * signed).astype(np.uint8)
    return node.constant(numbers[..., ::2] | numbers[..., 1::2] << 4)


def _unpack_pairs(node: Node, packed: Operand) -> Operand:
    """Unpack 4-bit integers along the last axis to one byte each."""
    wide, span = node.add(Cast, packed, ElementType.INT32), np.array(16, np.int32)
    halves = [node.add(Mod, wide, span), node.add(Div, wide, span)]
    pairs = node.add(Concat, [node.add(Unsqueeze, half, (-1,)) for half in halves], axis=-1)
    *outer, half, _ = shape_of(pairs)
    if not isinstance(half, int):
        raise UnsupportedError("the size of the last axis must be known")
    sizes = (*(size if isinstance(size, int) else 0 for size in outer), half * 2)
    flat = node.add(Reshape, pairs, sizes)
    return node.add(Cast, flat, ElementType.UINT8)


def with_quantization(node: Node, operand: Operand, quantization: Quantization) -> Operand:
    """Return an operand with the same integers whose type has this quantization."""
    if operand.type.quantization == quantization:
        return operand
    if operand.content is not None:
        return constant(operand.content, f"{node.outputs[0]}.quantized", quantization)
    return node.add(Reinterpret, operand, **parameters(quantization))


def _dequantize(node: Node, params: _Parameters) -> Operand:
    """Dequantize the first input to float32 by arithmetic."""
    real = _cast(node, node[0], FLOAT32)
    zero_point = node.optional(2)
    if zero_point is not None:
        real = node.add(Sub, real, params.broadcast(_cast(node, zero_point, FLOAT32)))
    return node.add(Mul, real, params.broadcast(_cast(node, node[1], FLOAT32)))


@imports("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node) -> Sequence[Operand]:
    return node.add_all(DynamicQuantize, node[0])


@imports(f"{DOMAIN}.QuantizeLinear", f"{DOMAIN}.DequantizeLinear")
def contributed_linear(node: Node) -> Operand:
    """Import ONNX Runtime's variants as ONNX's operators of a later opset with the same types."""
    return node.on_reals(node.type, node.inputs, opset=_NEWEST)


@imports("QLinearConv", f"{DOMAIN}.QLinearConv")
def qlinear_conv(node: Node) -> Operand:
    """Import QLinearConv; the bias has the product of both scales."""
    is_last = node.flag("channels_last", False)
    image, filter = _input(node, 0), _input(node, 3, axis=0)
    bias = _bias(node, 8, image, filter) if len(node.inputs) > 8 else None

    def convolved(image: Operand) -> Operand:
        return _quantize_output(node, node.on_reals("Conv", [image, filter, bias]), 6)

    return channels_last(node, image, convolved) if is_last else convolved(image)


@imports("QLinearMatMul", f"{DOMAIN}.QLinearMatMul")
def qlinear_matmul(node: Node) -> Operand:
    """Import QLinearMatMul; scale lists are per row of the left, per column of the right matrix."""
    product = node.on_reals("MatMul", [_input(node, 0, axis=-2), _input(node, 3, axis=-1)])
    return _quantize_output(node, product, 6)


@imports(f"{DOMAIN}.QGemm")
def qgemm(node: Node) -> Operand:
    """Import QGemm.

    Without an output scale the result is float32. A constant B without `transB` is transposed, so
    that its output channels are the first axis.
    """
    alpha, trans_a, trans_b = (
        node.real("alpha", 1.0),
        node.flag("transA", False),
        node.flag("transB", False),
    )
    a, b = _input(node, 0), _input(node, 3, axis=0 if trans_b else 1)
    bias = _bias(node, 6, a, b)
    if alpha != 1:
        raise UnsupportedError(f"alpha {alpha} cannot be expressed for quantized inputs; use 1")
    if not trans_b and b.value is not None:
        quantization = b.type.quantization
        if quantization is not None:
            axis = None if quantization.axis is None else 0
            quantization = replace(quantization, axis=axis)
        b, trans_b = constant(np.ascontiguousarray(b.value.T), b.name, quantization), True
    result = node.on_reals("Gemm", [a, b, bias], transA=int(trans_a), transB=int(trans_b))
    return result if node.optional(7) is None else _quantize_output(node, result, 7)


@imports(f"{DOMAIN}.QLinearAdd", f"{DOMAIN}.QLinearMul")
def qlinear_arithmetic(node: Node) -> Operand:
    result = node.on_reals(_plain_type(node), [_input(node, 0), _input(node, 3)])
    return _quantize_output(node, result, 6)


@imports(
    f"{DOMAIN}.QLinearAveragePool",
    f"{DOMAIN}.QLinearGlobalAveragePool",
    f"{DOMAIN}.QLinearLeakyRelu",
    f"{DOMAIN}.QLinearSigmoid",
)
def qlinear_unary(node: Node) -> Operand:
    is_last = node.flag("channels_last", False)

    def computed(operand: Operand) -> Operand:
        return _quantize_output(node, node.on_reals(_plain_type(node), [operand]), 3)

    return channels_last(node, _input(node, 0), computed) if is_last else computed(_input(node, 0))


@imports(f"{DOMAIN}.QLinearSoftmax")
def qlinear_softmax(node: Node) -> Operand:
    """Import QLinearSoftmax; an attribute selects the version of Softmax."""
    opset = node.integer("opset")
    return _quantize_output(node, node.on_reals("Softmax", [_input(node, 0)], opset=opset), 3)


@imports(f"{DOMAIN}.QLinearConcat")
def qlinear_concat(node: Node) -> Operand:
    """Import QLinearConcat: output scale and zero point, then each part with its own."""
    parts = [_input(node, index) for index in range(2, len(node.inputs), 3)]
    return _quantize_output(node, node.on_reals("Concat", parts), 0)


@imports(f"{DOMAIN}.QLinearWhere")
def qlinear_where(node: Node) -> Operand:
    result = node.on_reals("Where", [node[0], _input(node, 1), _input(node, 4)])
    return _quantize_output(node, result, 7)


def _plain_type(node: Node) -> str:
    return node.type.removeprefix("QLinear")


def _input(node: Node, index: int, axis: int = 0) -> Operand:
    """Return a quantized input; its scale and zero point are the next two inputs.

    Args:
        node: the operator.
        index: the index of the input.
        axis: the axis of a list of scales.
    """
    operand, scale, zero_point = node[index], node[index + 1], node.optional(index + 2)
    if scale.type.static_shape not in ((), (1,)):
        axis = axis_from_front(axis, rank_of(operand))
    quantization = quantization_of(scale, zero_point, operand, axis)
    if quantization is not None:
        return with_quantization(node, operand, quantization)
    return node.on_reals("DequantizeLinear", [operand, scale, zero_point], axis=axis)


def _bias(node: Node, index: int, image: Operand, filter: Operand) -> Operand | None:
    """Return the bias of a product, quantized by the product of both scales."""
    bias, left, right = node.optional(index), image.type.quantization, filter.type.quantization
    if bias is None:
        return None
    if left is None or right is None or left.axis is not None:
        raise UnsupportedError("a bias where scales are computed cannot be expressed")
    product = np.float32(left.scale[0]) * np.array(right.scale, np.float32)
    scale = np.maximum(product, np.finfo(np.float32).smallest_subnormal)
    axis = None if right.axis is None else 0
    return with_quantization(node, bias, Quantization(tuple(scale.tolist()), axis=axis))


def _quantize_output(node: Node, real: Operand, index: int) -> Operand:
    """Quantize a result by the scale and zero point at input `index`."""
    scale, zero_point = node[index], node.optional(index + 1)
    dtype = ElementType.UINT8 if zero_point is None else zero_point.type.element_type
    quantization = quantization_of(scale, zero_point, real, 0)
    if quantization is not None and dtype in _INTEGERS:
        return node.rounded(real, quantization, dtype)
    return node.on_reals("QuantizeLinear", [real, scale, zero_point])


class _Parameters:
    """Broadcasting of scales and zero points to an input: per tensor, axis index or block."""

    def __init__(self, node: Node, axis: int, block: int) -> None:
        self._node = node
        self._axis = axis
        self._block = block
        if block < 0:
            raise ModelError(f"block_size {block} is negative")

    def broadcast(self, operand: Operand) -> Operand:
        """Return the operand in a shape that broadcasts to the input."""
        node, shape = self._node, operand.type.static_shape
        if shape is None:
            return self._along_axis(self._check_length(operand))
        if self._block:
            return self._repeat_blocks(operand, shape)
        if len(shape) == 0 or shape == (1,):
            return node.add(Reshape, operand, ()) if shape else operand
        if len(shape) != 1:
            raise ModelError(f"{operand.name!r} has {len(shape)} axes, but no block_size is given")
        return self._along_axis(operand)

    def _along_axis(self, operand: Operand) -> Operand:
        rank = rank_of(self._node[0])
        axis = axis_from_front(self._axis, rank)
        return self._node.add(Reshape, operand, (-1,) + (1,) * (rank - 1 - axis))

    def _check_length(self, operand: Operand) -> Operand:
        """Return a list of dynamic length; the run fails unless it is as long as the axis."""
        node, shape = self._node, operand.type.shape
        if self._block or shape is None or len(shape) != 1:
            raise UnsupportedError(f"the shape of {operand.name!r} must be known")
        axis = axis_from_front(self._axis, rank_of(node[0]))
        if shape == (shape_of(node[0])[axis],):
            return operand
        size = node.add(Slice, node.add(ShapeOf, node[0]), (0,), (axis,), (axis + 1,))
        return node.add(Reshape, operand, size)

    def _repeat_blocks(self, operand: Operand, shape: tuple[int, ...]) -> Operand:
        """Repeat each element over its block."""
        node, target = self._node, static_shape_of(self._node[0])
        axis = axis_from_front(self._axis, len(target))
        if len(shape) != len(target):
            raise ModelError(f"{operand.name!r} has {len(shape)} axes, but must have {len(target)}")
        split = (*shape[: axis + 1], self._block, *shape[axis + 1 :])
        blocks = node.add(Expand, node.add(Unsqueeze, operand, (axis + 1,)), split)
        flat_shape = (*shape[:axis], shape[axis] * self._block, *shape[axis + 1 :])
        flat = node.add(Reshape, blocks, flat_shape)
        return node.add(Slice, flat, (axis,), (0,), (target[axis],))


def _quantize(
    node: Node,
    steps: Operand,
    zero_point: Operand | None,
    dtype: ElementType,
    *,
    saturate: bool = True,
) -> Operand:
    """Convert multiples of the scale to `dtype`: round, add the zero point, clip."""
    if dtype not in _INTEGERS:
        shifted = steps if zero_point is None else node.add(Add, steps, zero_point)
        return add_cast(node, shifted, dtype, saturate=saturate)
    rounded = node.add(Round, steps)
    if zero_point is not None:
        rounded = node.add(Add, rounded, zero_point)
    low, high = limits(dtype)
    return node.add(Cast, node.add(Clip, rounded, float(low), float(high)), dtype)


def _quantization(node: Node, axis: int) -> Quantization | None:
    """Return the quantization of a node; `None` if scale or zero point is not constant."""
    return quantization_of(node[1], node.optional(2), node[0], axis)


def quantization_of(
    scale: Operand, zero_point: Operand | None, operand: Operand, axis: int
) -> Quantization | None:
    """Return the quantization for a scale and a zero point; `None` if they are not constant.

    Calibration with masks may produce infinite scales, which no quantization can express: `None`,
    too.

    Args:
        scale: one number, or one per index of an axis.
        zero_point: likewise; 0 if omitted.
        operand: the quantized operand.
        axis: the axis of a list of scales.
    """
    if scale.value is None or scale.type.element_type is ElementType.FLOAT64:
        return None
    if zero_point is not None and zero_point.value is None:
        return None
    if not scale.value.size or np.isinf(scale.value).any():
        return None
    zeros = np.zeros(1) if zero_point is None or zero_point.value is None else zero_point.value
    _check_list(scale.value, "scale")
    _check_list(zeros, "zero point")
    has_axis = scale.value.ndim and scale.value.size > 1
    try:
        return Quantization(
            tuple(scale.value.ravel().tolist()),
            tuple(map(int, zeros.ravel().tolist())),
            axis_from_front(axis, rank_of(operand)) if has_axis else None,
        )
    except ValueError as error:
        raise ModelError(str(error)) from None


def _check_list(values: Array, what: str) -> None:
    if values.ndim > 1:
        raise UnsupportedError(f"the {what} must be one number, or a list of them along an axis")


def _cast(node: Node, operand: Operand, dtype: ElementType) -> Operand:
    return operand if operand.type.element_type is dtype else node.add(Cast, operand, dtype)
