"""Products of 8-bit integers, accumulated as integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from math import prod

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.dimension import product
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import require_rank, unify
from crosschip.ops.definition.slots import axis_integers, choice, integer, optional_tensor, tensor
from crosschip.ops.definition.windows import AutoPad, SpatialOperator, Windows
from crosschip.ops.standard.arithmetic import Add, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv2D,
    Conv3D,
    broadcast_channels,
    convolution_shape,
    convolve,
)
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul, product_shape
from crosschip.ops.standard.quantization import build_bare
from crosschip.ops.standard.slicing import Slice

_BYTES = frozenset({ElementType.INT8, ElementType.UINT8})
_EXACT = 2**24
"""Up to this number, float32 represents all integers."""


@operator("MAT_MUL_INTEGER")
class MatMulInteger(Operator):
    """Matrix product of 8-bit integers, `(x - x_zero_point) @ (y - y_zero_point)`, in int32.

    The axes before the last two broadcast, as in MAT_MUL. A zero point is 0 if omitted; otherwise
    it is one number, or `x_zero_point` has one per row (…, rows, 1) and `y_zero_point` one per
    column (…, 1, columns) or (columns), with other axes as in its tensor, or 1. Sums wrap around on
    overflow. The operator reads the stored integers of quantized tensors.

    Source: ONNX's MatMulInteger.
    """

    __slots__ = ()
    x = tensor(_BYTES)
    y = tensor(_BYTES)
    x_zero_point = optional_tensor(_BYTES, like="x")
    y_zero_point = optional_tensor(_BYTES, like="y")

    def multiply_adds(self) -> Dim:
        return product(shape_of(self.outputs[0])) * shape_of(self.x)[-1]

    def infer_element_type(self) -> ElementType:
        return ElementType.INT32

    def infer_shape(self) -> Shape:
        x, y = shape_of(self.x), shape_of(self.y)
        shape = product_shape(x, y)
        if self.x_zero_point is not None:
            _check_zero_points("x_zero_point", shape_of(self.x_zero_point), x, -1)
        if self.y_zero_point is not None:
            _check_zero_points("y_zero_point", shape_of(self.y_zero_point), y, -2)
        return shape

    def reference(
        self, x: Array, y: Array, x_zero_point: Array | None, y_zero_point: Array | None
    ) -> Array:
        return _as_int32(
            np.matmul(_subtract_zero_point(x, x_zero_point), _subtract_zero_point(y, y_zero_point))
        )

    def decompose(self, b: Builder) -> Operand:
        along = -2 if len(shape_of(self.y)) > 1 else -1
        sizes = shape_of(self.x)[-1], shape_of(self.y)[along]
        terms = next((size for size in sizes if isinstance(size, int)), None)
        dtype = ElementType.INT32 if terms is None else ElementType.FLOAT32
        x = _differences(b, self.x, self.x_zero_point, dtype)
        y = _differences(b, self.y, self.y_zero_point, dtype)
        if terms is None:
            return b.add(MatMul, x, y)
        weights = known_differences(self.y, self.y_zero_point)
        if weights is None:
            magnitudes = np.full((terms, 1), span(self.y, self.y_zero_point))
        else:
            magnitudes = np.moveaxis(np.abs(weights), along, 0).reshape(terms, -1)
        parts = [
            b.add(Cast, b.add(MatMul, *pair), ElementType.INT32)
            for pair in (
                (_part(b, x, -1, start, end, terms), _part(b, y, along, start, end, terms))
                for start, end in exact_parts(magnitudes, span(self.x, self.x_zero_point))
            )
        ]
        return reduce(lambda one, other: b.add(Add, one, other), parts)


_CONVS = {1: Conv1D, 2: Conv2D, 3: Conv3D}


class ConvInteger(SpatialOperator):
    """Base of convolutions of bytes: what holds for images of any number of axes."""

    __slots__ = ()
    unenforced = frozenset({"filter"})
    input = tensor(_BYTES)
    filter = tensor(_BYTES)
    input_zero_point = optional_tensor(_BYTES, like="input")
    filter_zero_point = optional_tensor(_BYTES, like="filter")
    auto_pad = choice(AutoPad, AutoPad.NONE)
    pads = axis_integers(0, 2)
    strides = axis_integers(1)
    group = integer(1)
    dilations = axis_integers(1)

    def windows(self, kernel: tuple[int, ...]) -> Windows:
        """Return the windows for a kernel size."""
        return Windows(kernel, self.strides, self.dilations, self.auto_pad, self.pads)

    def multiply_adds(self) -> Dim:
        return product(shape_of(self.outputs[0])) * product(shape_of(self.filter)[1:])

    def infer_element_type(self) -> ElementType:
        return ElementType.INT32

    def infer_shape(self) -> Shape:
        filter = require_rank(shape_of(self.filter), 2 + self.spatial_rank, "filter")
        if self.input_zero_point is not None and shape_of(self.input_zero_point) != ():
            raise ValueError("input_zero_point: is not one number")
        if self.filter_zero_point is not None:
            zero_point_shape = shape_of(self.filter_zero_point)
            if len(zero_point_shape) > 1:
                raise ValueError(
                    f"filter_zero_point: has {len(zero_point_shape)} axes, but at most 1"
                )
            if zero_point_shape:
                unify(
                    zero_point_shape[0],
                    filter[0],
                    "filter_zero_point: its size, and the output's channels",
                )
        return convolution_shape(shape_of(self.input), filter, self.group, self.windows)

    def reference(
        self,
        input: Array,
        filter: Array,
        input_zero_point: Array | None,
        filter_zero_point: Array | None,
    ) -> Array:
        if filter_zero_point is not None and filter_zero_point.ndim:
            filter_zero_point = broadcast_channels(filter_zero_point, 1 + self.spatial_rank)
        image, weights = (
            _subtract_zero_point(input, input_zero_point),
            _subtract_zero_point(filter, filter_zero_point),
        )
        return _as_int32(convolve(image, weights, self.windows(filter.shape[2:]), self.group))

    def decompose(self, b: Builder) -> Operand:
        shape = shape_of(self.filter)[1:]
        sizes = [size for size in shape if isinstance(size, int)]
        parts = self._channels(sizes) if len(sizes) == len(shape) else None
        dtype = ElementType.FLOAT64 if parts is None else ElementType.FLOAT32
        zero_point = self.filter_zero_point
        if zero_point is not None and shape_of(zero_point):
            zero_point = b.add(Reshape, zero_point, (-1, *(1,) * (1 + self.spatial_rank)))
        image = _differences(b, self.input, self.input_zero_point, dtype)
        weights = _differences(b, self.filter, zero_point, dtype)
        if parts is None or len(parts) == 1:
            return b.add(Cast, self._convolve(b, image, weights), ElementType.INT32)
        products = []
        for start, end in parts:
            channels = np.arange(start, end) + np.arange(self.group)[:, None] * sizes[0]
            pixels = b.add(Gather, image, channels.ravel(), axis=1)
            filter = _part(b, weights, 1, start, end, sizes[0])
            products.append(b.add(Cast, self._convolve(b, pixels, filter), ElementType.INT32))
        return reduce(lambda one, other: b.add(Add, one, other), products)

    def _channels(self, sizes: Sequence[int]) -> list[tuple[int, int]] | None:
        """Return ranges of a group's channels; `None` if one channel already has too many terms."""
        weights = known_differences(self.filter, self.filter_zero_point, channels=0)
        if weights is None:
            one = span(self.filter, self.filter_zero_point) * prod(sizes[1:])
            magnitudes = np.full((sizes[0], 1), one)
        else:
            magnitudes = np.abs(weights).sum(tuple(range(2, weights.ndim)), np.int64).T
        try:
            return exact_parts(magnitudes, span(self.input, self.input_zero_point))
        except ValueError:
            return None

    def _convolve(self, b: Builder, image: Operand, weights: Operand) -> Operand:
        return b.add(
            _CONVS[self.spatial_rank],
            image,
            weights,
            auto_pad=self.auto_pad,
            pads=self.pads,
            strides=self.strides,
            group=self.group,
            dilations=self.dilations,
        )


@operator("CONV_2D_INTEGER")
class Conv2DInteger(ConvInteger, spatial_rank=2):
    """Two-dimensional convolution of bytes, less their zero points, in int32.

    It is CONV_2D of `input - input_zero_point` and `filter - filter_zero_point`: padding counts as
    the zero point. One that is left out is 0; else it is one number, or `filter_zero_point` one for
    each output channel (C_out). Sums wrap around on overflow. Of quantized tensors it reads the
    integers, not what they stand for.

    Source: ONNX's ConvInteger.
    """

    __slots__ = ()


@operator("CONV_1D_INTEGER")
class Conv1DInteger(ConvInteger, spatial_rank=1):
    """One-dimensional convolution of bytes, less their zero points, in int32.

    It is CONV_1D of `input - input_zero_point` and `filter - filter_zero_point`; all else is as of
    CONV_2D_INTEGER. Source: ONNX's ConvInteger.
    """

    __slots__ = ()


@operator("CONV_3D_INTEGER")
class Conv3DInteger(ConvInteger, spatial_rank=3):
    """Three-dimensional convolution of bytes, less their zero points, in int32.

    It is CONV_3D of `input - input_zero_point` and `filter - filter_zero_point`; all else is as of
    CONV_2D_INTEGER. Source: ONNX's ConvInteger.
    """

    __slots__ = ()


def span(operand: Operand, zero_point: Operand | None) -> int:
    """Return the largest magnitude of differences of 8-bit integers and zero points."""
    if zero_point is not None:
        return 255
    return 128 if operand.type.element_type is ElementType.INT8 else 255


def known_differences(
    operand: Operand, zero_point: Operand | None, channels: int | None = None
) -> Array | None:
    """Return the differences of constant integers and constant zero points, in int16; else `None`.

    Args:
        operand: the integers.
        zero_point: one number, several that broadcast, or one per index of `channels`.
        channels: the axis of the zero points, if they do not broadcast.
    """
    if operand.value is None or (zero_point is not None and zero_point.value is None):
        return None
    wide = operand.value.astype(np.int16)
    if zero_point is None or zero_point.value is None:
        return wide
    zeros = zero_point.value.astype(np.int16)
    if channels is not None and zeros.ndim:
        zeros = zeros.reshape(-1, *(1,) * (wide.ndim - 1 - channels))
    return np.asarray(wide - zeros)


def exact_parts(magnitudes: Array, most: int) -> list[tuple[int, int]]:
    """Return ranges of terms whose products float32 accumulates exactly, in any order.

    Args:
        magnitudes: magnitudes of one factor, one row per term, one column per sum.
        most: the largest magnitude of the other factor.

    Raises:
        ValueError: a single term is already too large.
    """
    terms = len(magnitudes)
    total = magnitudes.sum(0, np.int64).max(initial=0).item() * most
    for count in range(max(1, -(-total // _EXACT)), terms + 1):
        ends = [terms * part // count for part in range(count + 1)]
        sums = np.add.reduceat(magnitudes, ends[:-1], axis=0, dtype=np.int64)
        if sums.max(initial=0).item() * most <= _EXACT:
            return list(pairwise(ends))
    if terms:
        raise ValueError("the products of one term are beyond the integers that float32 holds")
    return [(0, 0)]


def _check_zero_points(slot: str, zero_point_shape: Shape, shape: Shape, single: int) -> None:
    """Raise ValueError unless zero points match a tensor's shape, with size 1 on axis `single`."""
    if len(zero_point_shape) > len(shape):
        raise ValueError(
            f"{slot}: {list(zero_point_shape)} are not one number, or one a row or column"
        )
    for axis in range(-1, -len(zero_point_shape) - 1, -1):
        if zero_point_shape[axis] == 1:
            continue
        if axis == single or len(shape) == 1:
            if isinstance(zero_point_shape[axis], int):
                raise ValueError(
                    f"{slot}: {list(zero_point_shape)} are not one number, or one a row or column"
                )
        else:
            unify(zero_point_shape[axis], shape[axis], f"{slot}: a size, and that of its tensor")


def _subtract_zero_point(array: Array, zero_point: Array | None) -> Array:
    """Return the differences of integers and zero points, in float64.

    NumPy's integer products are slow, and float64 is exact for these sums.
    """
    wide = array.astype(np.float64)
    return wide if zero_point is None else wide - zero_point


def _as_int32(sums: Array) -> Array:
    return np.asarray(sums).astype(np.int64).astype(np.int32)


def _differences(
    b: Builder, operand: Operand, zero_point: Operand | None, dtype: ElementType
) -> Operand:
    """Build the differences of integers and zero points, in a wider type."""
    wide = b.add(Cast, build_bare(b, operand), dtype)
    if zero_point is None:
        return wide
    return b.add(Sub, wide, b.add(Cast, build_bare(b, zero_point), dtype))


def _part(b: Builder, operand: Operand, axis: int, start: int, end: int, size: int) -> Operand:
    """Build a range of an axis; with a dynamic dimension, the last range extends to the end."""
    if (start, end) == (0, size):
        return operand
    return b.add(Slice, operand, (axis,), (start,), (2**31 - 1 if end == size else end,))
