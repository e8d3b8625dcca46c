"""Products of bytes, summed up as integers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ops.definition.operator import Operator, operator, shape_of
from crosschip.ops.definition.shapes import of_rank, same
from crosschip.ops.definition.slots import choice, integer, integers, optional_tensor, tensor
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv2D, convolution_shape, convolved
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul, product_shape
from crosschip.ops.standard.quantization import Reinterpret
from crosschip.ops.standard.unary import Floor

_BYTES = frozenset({ElementType.INT8, ElementType.UINT8})
_TERMS = 2**24 // 255**2
"""So many products of differences of bytes float32 adds up without rounding, whatever they are."""


@operator("MAT_MUL_INTEGER")
class MatMulInteger(Operator):
    """The matrix product of bytes, `(x - x_zero_point) @ (y - y_zero_point)`, in int32.

    The axes before the last two broadcast, as those of MAT_MUL. A zero point that is left out is 0;
    else it is one number, or `x_zero_point` one for each row (…, rows, 1) and `y_zero_point` one
    for each column (…, 1, columns) or (columns), with the axes before as in its tensor, or 1. Sums
    wrap around on overflow. Of quantized tensors it reads the integers, not what they stand for.

    Source: ONNX's MatMulInteger.
    """

    __slots__ = ()
    x = tensor(_BYTES)
    y = tensor(_BYTES)
    x_zero_point = optional_tensor(_BYTES, like="x")
    y_zero_point = optional_tensor(_BYTES, like="y")

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
        return _as_int32(np.matmul(_centred(x, x_zero_point), _centred(y, y_zero_point)))

    def decompose(self, b: Builder) -> Operand:
        terms = shape_of(self.x)[-1]
        if not _is_exact(terms):
            x, y = (
                _differences(b, operand, zero_point, ElementType.INT32)
                for operand, zero_point in (
                    (self.x, self.x_zero_point),
                    (self.y, self.y_zero_point),
                )
            )
            return b.add(MatMul, x, y)
        y = _differences(b, self.y, self.y_zero_point, ElementType.FLOAT32)
        x = _differences(b, self.x, self.x_zero_point, ElementType.FLOAT32)
        return _summed(b, x, terms, lambda part: b.add(MatMul, part, y))


@operator("CONV_2D_INTEGER")
class Conv2DInteger(Operator):
    """Two-dimensional convolution of bytes, less their zero points, in int32.

    It is CONV_2D of `input - input_zero_point` and `filter - filter_zero_point`: padding counts as
    the zero point. One that is left out is 0; else it is one number, or `filter_zero_point` one for
    each output channel (C_out). Sums wrap around on overflow. Of quantized tensors it reads the
    integers, not what they stand for.

    Source: ONNX's ConvInteger.
    """

    __slots__ = ()
    unenforced = frozenset({"filter"})
    input = tensor(_BYTES)
    filter = tensor(_BYTES)
    input_zero_point = optional_tensor(_BYTES, like="input")
    filter_zero_point = optional_tensor(_BYTES, like="filter")
    auto_pad = choice(AutoPad, AutoPad.NONE)
    pads = integers((0, 0, 0, 0), 4)
    strides = integers((1, 1), 2)
    group = integer(1)
    dilations = integers((1, 1), 2)

    def windows(self, kernel: tuple[int, ...]) -> Windows:
        """The windows of a filter of a size."""
        return Windows(kernel, self.strides, self.dilations, self.auto_pad, self.pads)

    def infer_element_type(self) -> ElementType:
        return ElementType.INT32

    def infer_shape(self) -> Shape:
        filter = of_rank(shape_of(self.filter), 4, "filter")
        if self.input_zero_point is not None and shape_of(self.input_zero_point) != ():
            raise ValueError("input_zero_point: is not one number")
        if self.filter_zero_point is not None:
            own = shape_of(self.filter_zero_point)
            if len(own) > 1:
                raise ValueError(f"filter_zero_point: has {len(own)} axes, but at most 1")
            if own:
                same(own[0], filter[0], "filter_zero_point: its size, and the output's channels")
        return convolution_shape(shape_of(self.input), filter, self.group, self.windows)

    def reference(
        self,
        input: Array,
        filter: Array,
        input_zero_point: Array | None,
        filter_zero_point: Array | None,
    ) -> Array:
        if filter_zero_point is not None and filter_zero_point.ndim:
            filter_zero_point = filter_zero_point.reshape(-1, 1, 1, 1)
        image, weights = _centred(input, input_zero_point), _centred(filter, filter_zero_point)
        return _as_int32(convolved(image, weights, self.windows(filter.shape[2:]), self.group))

    def decompose(self, b: Builder) -> Operand:
        shape = shape_of(self.filter)
        sizes = [size for size in shape[1:] if isinstance(size, int)]
        terms = math.prod(sizes) if len(sizes) == 3 else None
        dtype = ElementType.FLOAT32 if _is_exact(terms) else ElementType.FLOAT64
        zero_point = self.filter_zero_point
        if zero_point is not None and shape_of(zero_point):
            zero_point = b.add(Reshape, zero_point, (-1, 1, 1, 1))
        image = _differences(b, self.input, self.input_zero_point, dtype)
        weights = _differences(b, self.filter, zero_point, dtype)

        def product(part: Operand) -> Operand:
            return b.add(
                Conv2D,
                part,
                weights,
                auto_pad=self.auto_pad,
                pads=self.pads,
                strides=self.strides,
                group=self.group,
                dilations=self.dilations,
            )

        if dtype is ElementType.FLOAT64:
            return b.add(Cast, product(image), ElementType.INT32)
        return _summed(b, image, terms, product)


def _check_zero_points(slot: str, own: Shape, shape: Shape, single: int) -> None:
    """`ValueError` unless zero points go along with a tensor, with size 1 on an axis."""
    if len(own) > len(shape):
        raise ValueError(f"{slot}: {list(own)} are not one number, or one a row or column")
    for axis in range(-1, -len(own) - 1, -1):
        if own[axis] == 1:
            continue
        if axis == single or len(shape) == 1:
            if isinstance(own[axis], int):
                raise ValueError(f"{slot}: {list(own)} are not one number, or one a row or column")
        else:
            same(own[axis], shape[axis], f"{slot}: a size, and that of its tensor")


def _is_exact(terms: Dim | None) -> bool:
    """Tell whether float32 can add up so many products, if need be in two parts."""
    return isinstance(terms, int) and terms <= 16 * _TERMS


def _centred(array: Array, zero_point: Array | None) -> Array:
    """Differences of bytes from zero points, in float64.

    There is no quick product of integers in NumPy, but float64 holds every sum of theirs.
    """
    wide = array.astype(np.float64)
    return wide if zero_point is None else wide - zero_point


def _as_int32(sums: Array) -> Array:
    return np.asarray(sums).astype(np.int64).astype(np.int32)


def _differences(
    b: Builder, operand: Operand, zero_point: Operand | None, dtype: ElementType
) -> Operand:
    """The differences of bytes from zero points, in a wider type."""
    wide = b.add(Cast, _bare(b, operand), dtype)
    if zero_point is None:
        return wide
    return b.add(Sub, wide, b.add(Cast, _bare(b, zero_point), dtype))


def _bare(b: Builder, operand: Operand) -> Operand:
    return operand if operand.type.quantization is None else b.add(Reinterpret, operand, bare=True)


def _summed(
    b: Builder, left: Operand, terms: Dim | None, product: Callable[[Operand], Operand]
) -> Operand:
    """Sums of products in int32, by products in float32 that round none.

    Where there are many terms, the left side is taken apart into multiples of 16 and what is left.

    Args:
        b: what the operations are added to.
        left: the differences on the left side.
        terms: how many products are added up, if that is known.
        product: adds the product of a part of the left side.
    """
    if isinstance(terms, int) and terms <= _TERMS:
        return b.add(Cast, product(left), ElementType.INT32)
    sixteen = np.array(16, np.float32)
    tall = b.add(Floor, b.add(Div, left, sixteen))
    rest = b.add(Sub, left, b.add(Mul, tall, sixteen))
    high, low = (b.add(Cast, product(part), ElementType.INT32) for part in (tall, rest))
    return b.add(Add, b.add(Mul, high, np.array(16, np.int32)), low)
