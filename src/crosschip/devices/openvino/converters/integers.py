"""Products of bytes with constant bytes, in the form that OpenVINO computes as integers.

The bytes pass a quantization that leaves them unchanged, and the constants are multiplied by 1.
OpenVINO then multiplies bytes, accumulates in int32 and converts the sums to float32. Sums that
float32 would round are split. OpenVINO needs constant zero points: the share of a computed one is
subtracted from each sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.convolution import require_covered
from crosschip.devices.openvino.converters.matrix import require_same_size
from crosschip.devices.openvino.converters.table import converts, stored, whole
from crosschip.devices.openvino.converters.windows import window_arguments
from crosschip.devices.openvino.graph import Graph
from crosschip.devices.openvino.lowering.convolution import reads_lone_column, strides_over_padding
from crosschip.devices.openvino.precision import as_bytes, as_weights, multiplies_bytes
from crosschip.hal import Refusal, Rule
from crosschip.ir import Array, Dim, ElementType, Operand
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.standard.convolution import broadcast_channels
from crosschip.ops.standard.integers import (
    Conv1DInteger,
    Conv2DInteger,
    Conv3DInteger,
    ConvInteger,
    MatMulInteger,
    exact_parts,
    known_differences,
    span,
)

_TYPES = {ElementType.INT8, ElementType.UINT8, ElementType.INT32}


def _check_weights(slot: str, differences: Array | None) -> Refusal | None:
    """Refuse weights unless they are constant and, less their zero points, int8."""
    if differences is None:
        return Refusal(slot, "is computed at run time, but must be constant here")
    if differences.size and not -128 <= differences.min() <= differences.max() <= 127:
        return Refusal(slot, "its differences from its zero points are not all int8")
    if not multiplies_bytes():
        return Refusal(slot, "this processor cuts off sums of products of bytes")
    return None


def _check_matrix(op: MatMulInteger) -> Refusal | None:
    if _sums_over_open_axis(op):
        return None
    if op.x.value is not None or len(op.x.type.shape or ()) < 2:
        return Refusal("x", "is constant, or has less than two axes")
    if len(op.y.type.shape or ()) != 2:
        return Refusal("y", "is no matrix", Rule.SHAPE)
    if not isinstance((op.x.type.shape or ())[-1], int):
        return Refusal("x", "the size of its last axis must be known", Rule.SHAPE)
    if op.x_zero_point is not None and op.x_zero_point.type.static_shape is None:
        return Refusal("x_zero_point", "its shape must be known", Rule.SHAPE)
    return _check_weights("y", known_differences(op.y, op.y_zero_point))


@converts(MatMulInteger, types=_TYPES, limit=_check_matrix, nonempty=True)
def mat_mul_integer(g: Graph, op: MatMulInteger) -> Node:
    if _sums_over_open_axis(op):
        return _multiply_halves(g, op)
    weights = known_differences(op.y, op.y_zero_point)
    assert weights is not None, "the limit asks for constants"
    x, zero_point = _bytes(g, op.x), _zero_point(g, op.x_zero_point)
    products = []
    for start, end in exact_parts(np.abs(weights), span(op.x, op.x_zero_point)):
        rows = weights[start:end]
        part = _slice_axis(g, x, -1, start, end) if len(rows) < len(weights) else x
        product = ops.matmul(part, as_weights(g, rows), False, False)
        products.append(_subtract_zero_point(g, product, zero_point, rows.sum(0)))
    return _sum_of(products)


def _sums_over_open_axis(op: MatMulInteger) -> bool:
    """Return whether two computed matrices are multiplied over an axis of dynamic size.

    Products over a static axis are split before conversion.
    """
    x, y = op.x.type.shape or (), op.y.type.shape or ()
    if op.x.is_constant or op.y.is_constant or min(len(x), len(y)) < 2:
        return False
    fits = _has_zeros_for(op.x_zero_point, x[-2]) and _has_zeros_for(op.y_zero_point, y[-1])
    return fits and not isinstance(x[-1], int) and not isinstance(y[-2], int)


def _has_zeros_for(zero_point: Operand | None, size: Dim) -> bool:
    """Return whether there is one zero point, or one per element of an axis of this size."""
    if zero_point is None:
        return True
    shape = zero_point.type.static_shape
    return shape is not None and (isinstance(size, int) or math.prod(shape) == 1)


_MOST_TERMS = 2**16
"""The number of products of half bytes, each of at most 2 ** 8, that float32 adds exactly."""


def _multiply_halves(g: Graph, op: MatMulInteger) -> Node:
    """Multiply four bits of each integer at a time."""
    require_same_size(g, op, "y", (op.x, -1), (op.y, -2))
    few = ops.less_equal(g.size(op.x, -1), g.scalar(_MOST_TERMS))
    g.require(op, f"x: there are more than {_MOST_TERMS} products to add up", few)
    total: Node | None = None
    for x, x_weight in _split_halves(g, op.x, op.x_zero_point):
        for y, y_weight in _split_halves(g, op.y, op.y_zero_point):
            product = ops.convert(ops.matmul(x, y, False, False), "i32")
            weight = g.constant(np.array(x_weight * y_weight, np.int32))
            part = ops.multiply(product, weight)
            total = part if total is None else ops.add(total, part)
    assert total is not None, "there are four"
    return total


def _split_halves(
    g: Graph, operand: Operand, zero_point: Operand | None
) -> Sequence[tuple[Node, int]]:
    """Split each difference from the zero point into two halves; return each with its weight."""
    numbers = ops.convert(ops.convert(g[operand], "i32"), "f32")
    if zero_point is not None:
        zeros = ops.convert(ops.convert(g[zero_point], "i32"), "f32")
        numbers = ops.subtract(numbers, zeros)
    sixteen, sixteenth = (g.constant(np.array(n, np.float32)) for n in (16, 1 / 16))
    upper = ops.floor(ops.multiply(numbers, sixteenth))
    return [(upper, 16), (ops.subtract(numbers, ops.multiply(upper, sixteen)), 1)]


def _check_image(op: ConvInteger) -> Refusal | None:
    kernel = (op.filter.type.static_shape or ())[2:]
    if op.input.value is not None or not kernel:
        return Refusal("input", "is constant, or the filter's shape is not known")
    if strides_over_padding(op) or reads_lone_column(op):
        return Refusal("strides", "with these sizes, OpenVINO reads something else")
    sizes = (op.input.type.static_shape, op.outputs[0].type.static_shape)
    if op.spatial_rank == 3 and not _has_no_border(op) and None in sizes:
        return Refusal("input", "its sizes must be known where volumes are padded", Rule.SHAPE)
    if op.input_zero_point is not None and not _has_no_border(op) and None in sizes:
        return Refusal("input", "its sizes must be known where it is padded", Rule.SHAPE)
    return _check_weights("filter", known_differences(op.filter, op.filter_zero_point, channels=0))


def _has_no_border(op: ConvInteger) -> bool:
    try:
        return not any(
            op.windows((op.filter.type.static_shape or ())[2:]).sides((1,) * op.spatial_rank)
        )
    except UnknownRank:
        return False


@converts(
    Conv1DInteger, Conv2DInteger, Conv3DInteger, types=_TYPES, limit=_check_image, nonempty=True
)
def conv_integer(g: Graph, op: ConvInteger) -> Node:
    weights = known_differences(op.filter, op.filter_zero_point, channels=0)
    assert weights is not None, "the limit asks for constants"
    require_covered(g, op)
    image, zero_point = _bytes(g, op.input), _zero_point(g, op.input_zero_point)
    magnitudes = np.abs(weights).sum(tuple(range(2, weights.ndim)), np.int64).T
    products = []
    for start, end in exact_parts(magnitudes, span(op.input, op.input_zero_point)):
        filter, part = weights[:, start:end], image
        if end - start < weights.shape[1]:
            part = _select_channels(g, op, image, start, end)
        product = _convolve(g, op, part, filter)
        sums = np.zeros(1) if zero_point is None else _sum_filter(op, filter)
        products.append(_subtract_zero_point(g, product, zero_point, sums))
    return _sum_of(products)


def _select_channels(g: Graph, op: ConvInteger, image: Node, start: int, end: int) -> Node:
    """Select a range of the channels of each group."""
    if op.group == 1:
        return _slice_axis(g, image, 1, start, end)
    count = (op.filter.type.static_shape or ())[1]
    channels = np.arange(start, end) + np.arange(op.group)[:, None] * count
    return ops.gather(image, g.int64(channels.ravel().tolist()), g.scalar(1))


def _convolve(g: Graph, op: ConvInteger, image: Node, filter: Array) -> Node:
    window = {"dilations": op.dilations, **window_arguments(op)}
    if op.group == 1:
        return ops.convolution(image, as_weights(g, filter), **window)
    out, *rest = filter.shape
    filters = as_weights(g, filter.reshape(op.group, out // op.group, *rest))
    return ops.group_convolution(image, filters, **window)


def _sum_filter(op: ConvInteger, filter: Array) -> Array:
    """Return, per output pixel, the sum of the filter elements that lie on the image."""
    taps = filter.sum(1, np.int64)
    if _has_no_border(op):
        return broadcast_channels(taps.sum(tuple(range(1, taps.ndim))), op.spatial_rank)
    image = (op.input.type.static_shape or ())[2:]
    windows = op.windows(filter.shape[2:]).explicit(image)
    counts = (op.outputs[0].type.static_shape or ())[2:]
    axes = (image, counts, windows.kernel, windows.strides, windows.dilations, windows.before)
    for size, count, *numbers in zip(*axes, strict=True):
        # Replaces the first window axis by an output axis, which becomes the last one.
        taps = np.tensordot(taps, _taps_on_image(size, count, *numbers), (1, 1))
    return np.asarray(taps)


def _taps_on_image(
    size: int, count: int, kernel: int, stride: int, dilation: int, before: int
) -> Array:
    """Return an array [windows, filter elements] of an axis: 1 for elements on the image."""
    positions = np.arange(count)[:, None] * stride + np.arange(kernel) * dilation - before
    return np.asarray((positions >= 0) & (positions < size)).astype(np.int64)


def _bytes(g: Graph, operand: Operand) -> Node:
    if operand not in g.byte_nodes:
        g.byte_nodes[operand] = as_bytes(g, whole(g[operand]), operand.type.element_type.dtype)
    return g.byte_nodes[operand]


def _zero_point(g: Graph, operand: Operand | None) -> Node | None:
    """Return a zero point in float32; `None` if it is 0.

    OpenVINO treats a conversion of bytes with a product as a dequantization, and divides by its
    scale; `floor` between them prevents that.
    """
    if operand is None:
        return None
    if operand.value is not None:
        return g.constant(operand.value.astype(np.float32)) if operand.value.any() else None
    return ops.floor(whole(g[operand]))


def _slice_axis(g: Graph, value: Node, axis: int, start: int, end: int) -> Node:
    return ops.slice(value, *(g.int64([number]) for number in (start, end, 1, axis)))


def _subtract_zero_point(g: Graph, product: Node, zero_point: Node | None, sums: Array) -> Node:
    """Subtract `zero_point * sums` from a product, where `sums` are sums of the other factor."""
    if zero_point is None:
        return product
    return ops.subtract(product, ops.multiply(zero_point, g.constant(sums.astype(np.float32))))


def _sum_of(products: Sequence[Node]) -> Node:
    if len(products) == 1:
        return stored(products[0], "i32")
    return reduce(ops.add, [ops.convert(product, "i32") for product in products])
