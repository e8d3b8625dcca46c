"""Reductions of axes to one value, and cumulative sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.dimension import product
from crosschip.ir.types import BOOLEANS, FLOATS, HALF_FLOATS, NUMBERS
from crosschip.ops.definition.kinds import Elementwise
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of, shape_value_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import normalize_axes, normalize_axis, unknown_sizes
from crosschip.ops.definition.slots import ComputedParameter, flag, integer, integers, tensor
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Abs, Exp, Log, Sqrt


def cast_wide(b: Builder, operand: Operand) -> Operand:
    """Cast float16 and bfloat16 to float32, whose range holds sums of their values."""
    narrow = operand.type.element_type in HALF_FLOATS
    return b.add(Cast, operand, ElementType.FLOAT32) if narrow else operand


def cast_like(b: Builder, operand: Operand, like: Operand) -> Operand:
    """Cast an operand to another operand's element type."""
    element_type = like.type.element_type
    operand_type = operand.type.element_type
    return operand if operand_type is element_type else b.add(Cast, operand, element_type)


class Reduction(Operator):
    """Base class of reductions of `axes`, or of all axes if `axes` is empty.

    A negative axis counts from the last one; an axis that occurs twice is an error. A reduced axis
    has size 1 in the output with `keepdim`, else it is removed. The output has the input's element
    type.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    axes = integers(())
    keepdim = flag(True)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        try:
            axes = normalize_axes(self.axes, len(shape)) or range(len(shape))
        except ComputedParameter:
            return self._shape_by_count(len(shape))
        if self.keepdim:
            return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in axes)

    def check_rules(self) -> None:
        # The decomposition has the same parameters and rules.
        return

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        rows, reduced = axes[0], normalize_axes(self.axes, len(shape_of(self.input)))
        if rows is None or not reduced or rows in reduced:
            return None
        return rows if self.keepdim else rows - sum(axis < rows for axis in reduced)

    def over(self) -> tuple[Operand | None, Operand | None]:
        """Return the operands of `axes` and `keepdim`, to build another reduction."""
        return self.operand("axes"), self.operand("keepdim")

    def _shape_by_count(self, rank: int) -> Shape:
        """Return the shape as far as it follows from the number of axes."""
        if self.keepdim:
            return unknown_sizes(rank)
        axes = self.operand("axes")
        length = axes.type.static_shape if axes else None
        if length is None:
            raise ComputedParameter(type(self).axes)
        count = length[0] if length else 1
        if count > rank:
            raise ValueError(f"axes: are {count}, but the input has {rank}")
        return unknown_sizes(rank - count if count else 0, "axes")


@operator("REDUCE_SUM", core=True)
class ReduceSum(Reduction):
    """The sum of the elements; integers wrap around on overflow, the sum of no elements is 0.

    The sum is NaN if an element is NaN, or if there are infinities of both signs. Floating-point
    numbers are added in any order.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.sum(input, self.axes or None, input.dtype, keepdims=self.keepdim)


@operator("REDUCE_PROD", core=True)
class ReduceProd(Reduction):
    """The product of the elements; integers wrap around on overflow, that of no elements is 1.

    The product is NaN if an element is NaN, or if there are 0 and an infinity. Floating-point
    numbers are multiplied in any order: the product is unspecified if the product of some of its
    factors overflows or underflows.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.prod(input, self.axes or None, input.dtype, keepdims=self.keepdim)

    def infer_shape_value(self) -> Sequence[Dim]:
        if len(shape_of(self.input)) != 1:
            raise UnknownRank
        return [product(tuple(shape_value_of(self.input)))]


@operator("REDUCE_MAX", core=True)
class ReduceMax(Reduction):
    """The maximum; NaN if an element is NaN.

    The maximum of no elements is the smallest value of the type: minus infinity, the smallest
    integer, or false. True is greater than false.
    """

    __slots__ = ()
    input = tensor(NUMBERS | BOOLEANS)

    def reference(self, input: Array) -> Array:
        least = limits(input.dtype)[0]
        return np.max(input, self.axes or None, keepdims=self.keepdim, initial=least)


@operator("REDUCE_MIN", core=True)
class ReduceMin(Reduction):
    """The minimum; NaN if an element is NaN.

    The minimum of no elements is the largest value of the type: infinity, the largest integer, or
    true. False is less than true.
    """

    __slots__ = ()
    input = tensor(NUMBERS | BOOLEANS)

    def reference(self, input: Array) -> Array:
        greatest = limits(input.dtype)[1]
        return np.min(input, self.axes or None, keepdims=self.keepdim, initial=greatest)


@operator("REDUCE_MEAN")
class ReduceMean(Reduction):
    """The arithmetic mean: the sum, as in REDUCE_SUM, divided by the number of elements.

    The mean of no elements is NaN; so is the mean if an element is NaN.
    """

    __slots__ = ()
    input = tensor(FLOATS)

    def reference(self, input: Array) -> Array:
        total = np.sum(input, self.axes or None, keepdims=self.keepdim)
        count = np.prod([input.shape[axis] for axis in self.axes or range(input.ndim)])
        return np.asarray(total / count.astype(input.dtype))

    def decompose(self, b: Builder) -> Operand:
        wide = cast_wide(b, self.input)
        total = b.add(ReduceSum, wide, *self.over())
        return cast_like(b, b.add(Div, total, self._count(b, wide)), self.input)

    def _count(self, b: Builder, wide: Operand) -> Operand:
        """Build the number of elements per reduced value."""
        shape, dtype = shape_of(wide), wide.type.element_type
        axes = normalize_axes(self.axes, len(shape)) or tuple(range(len(shape)))
        count = product(tuple(shape[axis] for axis in axes))
        if isinstance(count, int):
            return b.constant(np.array(count, dtype.dtype))
        sizes = b.add(Gather, b.add(ShapeOf, wide), b.constant(np.array(axes)), 0)
        return b.add(Cast, b.add(ReduceProd, sizes, keepdim=False), dtype)


@operator("REDUCE_ALL")
class ReduceAll(Reduction):
    """True if all elements are true, also if there are none."""

    __slots__ = ()
    input = tensor(BOOLEANS)

    def reference(self, input: Array) -> Array:
        return np.all(input, self.axes or None, keepdims=self.keepdim)

    def decompose(self, b: Builder) -> Operand:
        return b.add(ReduceMin, self.input, *self.over())


@operator("REDUCE_ANY")
class ReduceAny(Reduction):
    """True if any element is true; false if there are none."""

    __slots__ = ()
    input = tensor(BOOLEANS)

    def reference(self, input: Array) -> Array:
        return np.any(input, self.axes or None, keepdims=self.keepdim)

    def decompose(self, b: Builder) -> Operand:
        return b.add(ReduceMax, self.input, *self.over())


def limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the smallest and the largest value of an element type."""
    if dtype.kind == "b":
        return False, True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return -np.inf, np.inf


@operator("REDUCE_L1")
class ReduceL1(Reduction):
    """The sum of the absolute values: `sum(abs(input))`; 0 for no elements.

    Integers wrap around on overflow; the absolute value of the smallest one is itself.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.sum(np.abs(input), self.axes or None, input.dtype, keepdims=self.keepdim)

    def decompose(self, b: Builder) -> Operand:
        return b.add(ReduceSum, b.add(Abs, self.input), *self.over())


@operator("REDUCE_SUM_SQUARE")
class ReduceSumSquare(Reduction):
    """The sum of the squares: `sum(input * input)`; 0 for no elements.

    Integers wrap around on overflow.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.sum(input * input, self.axes or None, input.dtype, keepdims=self.keepdim)

    def decompose(self, b: Builder) -> Operand:
        return b.add(ReduceSum, b.add(Mul, self.input, self.input), *self.over())


@operator("REDUCE_L2")
class ReduceL2(Reduction):
    """The Euclidean norm: `sqrt(sum(input * input))`; 0 for no elements.

    The squares are not scaled, so the norm is infinite if their sum overflows.
    """

    __slots__ = ()
    input = tensor(FLOATS)

    def reference(self, input: Array) -> Array:
        return np.sqrt(np.sum(input * input, self.axes or None, keepdims=self.keepdim))

    def decompose(self, b: Builder) -> Operand:
        squares = b.add(ReduceSumSquare, cast_wide(b, self.input), *self.over())
        return cast_like(b, b.add(Sqrt, squares), self.input)


@operator("REDUCE_LOG_SUM")
class ReduceLogSum(Reduction):
    """The natural logarithm of the sum: `log(sum(input))`.

    It is minus infinity for a sum of 0, also for no elements, and NaN for a negative sum.
    """

    __slots__ = ()
    input = tensor(FLOATS)

    def reference(self, input: Array) -> Array:
        return np.log(np.sum(input, self.axes or None, keepdims=self.keepdim))

    def decompose(self, b: Builder) -> Operand:
        total = b.add(ReduceSum, cast_wide(b, self.input), *self.over())
        return cast_like(b, b.add(Log, total), self.input)


@operator("REDUCE_LOG_SUM_EXP")
class ReduceLogSumExp(Reduction):
    """The natural logarithm of the sum of exponentials: `log(sum(exp(input)))`.

    It is computed as `m + log(sum(exp(input - m)))`, where `m` is the maximum clamped to the finite
    range of the type, so that no exponential overflows. It is infinity if an element is, minus
    infinity if all elements are or there are none, and NaN if an element is.
    """

    __slots__ = ()
    input = tensor(FLOATS)

    def reference(self, input: Array) -> Array:
        over = self.axes or None
        finite = np.finfo(input.dtype)
        greatest = np.max(input, over, keepdims=True, initial=finite.min)
        greatest = np.minimum(greatest, finite.max)
        total = np.log(np.sum(np.exp(input - greatest), over, keepdims=True)) + greatest
        return total if self.keepdim else np.squeeze(total, over)

    def decompose(self, b: Builder) -> Operand:
        axes, keepdim = self.over()
        # NumPy's finfo, which has type annotations, does not support bfloat16.
        finite = ml_dtypes.finfo(self.input.type.element_type.dtype)  # type: ignore[no-untyped-call]
        low, high = float(finite.min), float(finite.max)
        kept_maximum = b.add(Clip, b.add(ReduceMax, self.input, axes), low, high)
        powers = b.add(Exp, b.add(Sub, self.input, kept_maximum))
        greatest = b.add(Clip, b.add(ReduceMax, self.input, axes, keepdim), low, high)
        return b.add(Add, b.add(Log, b.add(ReduceSum, powers, axes, keepdim)), greatest)


class _Cumulative(Elementwise):
    """Base class of cumulative reductions along an axis."""

    __slots__ = ()
    input = tensor(NUMBERS)
    axis = integer(-1)
    exclusive = flag(False)
    reverse = flag(False)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        try:
            normalize_axis(self.axis, len(shape))
        except ComputedParameter:
            return shape  # the axis does not affect it
        return shape

    def accumulate(self, function: np.ufunc, neutral: int, input: Array) -> Array:
        """Return the cumulative results; `neutral` is the first one if `exclusive`."""
        axis = self.axis
        array = np.flip(input, axis) if self.reverse else input
        result = function.accumulate(array, axis, dtype=input.dtype)
        if self.exclusive:
            size = result.shape[axis]
            first = np.full_like(np.take(result, range(min(1, size)), axis), neutral)
            result = np.concatenate([first, np.take(result, range(size - 1), axis)], axis)
        return np.flip(result, axis) if self.reverse else result


@operator("CUM_SUM", core=True)
class CumSum(_Cumulative):
    """The cumulative sum along `axis`: `output[i] = sum(input[0 … i])`.

    With `exclusive`, element `i` is excluded, so the first sum is 0; with `reverse`, sums run from
    the last element backwards. A negative `axis` counts from the last one. Integers wrap around on
    overflow; a NaN makes each sum that includes it NaN.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return self.accumulate(np.add, 0, input)


@operator("CUM_PROD")
class CumProd(_Cumulative):
    """The cumulative product along `axis`: `output[i] = prod(input[0 … i])`.

    With `exclusive`, element `i` is excluded, so the first product is 1; with `reverse`, products
    run from the last element backwards. A negative `axis` counts from the last one. Integers wrap
    around on overflow; a NaN makes each product that includes it NaN.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return self.accumulate(np.multiply, 1, input)

    def decompose(self, b: Builder) -> Operand | None:
        shape = shape_of(self.input)
        axis = normalize_axis(self.axis, len(shape))
        size = shape[axis]
        if not isinstance(size, int):
            return None
        value = _flip(b, self.input, axis) if self.reverse else self.input
        if self.exclusive:
            value = _shift(b, value, axis, min(1, size))
        length = 1  # the number of factors of each product
        while length < size:
            value = b.add(Mul, value, _shift(b, value, axis, length))
            length *= 2
        return _flip(b, value, axis) if self.reverse else value


def _flip(b: Builder, operand: Operand, axis: int) -> Operand:
    return b.add(Slice, operand, (axis,), (-1,), (-(2**31),), (-1,))


def _shift(b: Builder, operand: Operand, axis: int, count: int) -> Operand:
    """Build the elements shifted by `count` along the axis, with 1 in the first `count` entries."""
    pads = [0] * (2 * len(shape_of(operand)))
    pads[2 * axis : 2 * axis + 2] = [count, -count]
    one = b.constant(np.ones((), operand.type.element_type.dtype))
    return b.add(Pad, operand, pads, value=one)
