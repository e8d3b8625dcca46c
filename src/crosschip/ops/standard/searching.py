"""Searches for elements: maximum, minimum, top k, nonzero and unique elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape, unknown
from crosschip.ir.dimension import product
from crosschip.ir.types import BOOLEANS, FLOATS, NUMBERS
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.definition.slots import (
    ComputedParameter,
    flag,
    index_type,
    integer,
    optional_integer,
    tensor,
)
from crosschip.ops.standard.logical import BitwiseNot
from crosschip.ops.standard.unary import Neg


def _find_index(
    find: Callable[..., Any], input: Array, axis: int, keepdim: bool, select_last: bool
) -> Array:
    """Return the index of the first (or last) element along an axis that a NumPy function finds."""
    array = np.flip(input, axis) if select_last else input
    position = find(array, axis, keepdims=keepdim)
    return np.asarray(input.shape[axis] - 1 - position if select_last else position)


class ArgExtreme(Operator):
    """Base class of ARG_MAX and ARG_MIN: the axis is removed, or has size 1 with `keepdim`.

    A negative `axis` counts from the last one. An axis of size 0 is an error. The index is an int32
    or int64, as `dtype` says.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    axis = integer()
    keepdim = flag(True)
    dtype = index_type(ElementType.INT64)
    select_last = flag(False)

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        shape = list(shape_of(self.input))
        axis = normalize_axis(self.axis, len(shape))
        if shape[axis] == 0:
            raise ValueError(f"axis: axis {axis} of the input has no elements")
        shape[axis : axis + 1] = [1] if self.keepdim else []
        return tuple(shape)

    def check_rules(self) -> None:
        # The decomposition has the same parameters and rules.
        return


@operator("ARG_MAX", core=True)
class ArgMax(ArgExtreme):
    """The index of the maximum along `axis`.

    Of equal elements it is the first, or the last with `select_last`. NaN counts as greater than
    any number, as in NumPy and ONNX's evaluator.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return _find_index(np.argmax, input, self.axis, self.keepdim, self.select_last)


@operator("ARG_MIN")
class ArgMin(ArgExtreme):
    """The index of the minimum along `axis`.

    Of equal elements it is the first, or the last with `select_last`. NaN counts as less than any
    number.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return _find_index(np.argmin, input, self.axis, self.keepdim, self.select_last)

    def decompose(self, b: Builder) -> Operand:
        # The bitwise complement of an integer reverses the order like the negation, but cannot
        # overflow.
        reverse = Neg if self.input.type.element_type in FLOATS else BitwiseNot
        parameters = map(self.operand, ("axis", "keepdim", "dtype", "select_last"))
        return b.add(ArgMax, b.add(reverse, self.input), *parameters)


@operator("TOP_K", core=True)
class TopK(Operator):
    """The `k` largest elements along `axis`, or the smallest without `largest`, in two outputs.

    1. The elements in descending (ascending) order, in the input's type.
    2. Their indices on the axis, as int32 or int64 (`return_indices_dtype`).

    Equal elements are in the order of their indices. NaN counts as greater than any number. Without
    `sorted` any order is valid; the reference sorts. A negative `axis` counts from the last one. A
    `k` that is negative or exceeds the axis' size is an error; a `k` of 0 gives empty outputs.
    """

    __slots__ = ()
    moves = True
    input = tensor(NUMBERS)
    k = integer()
    axis = integer(-1)
    largest = flag(True)
    sorted = flag(True)
    return_indices_dtype = index_type(ElementType.INT64)

    def output_count(self) -> int:
        return 2

    def infer_element_type(self) -> list[ElementType]:
        return [type(self).input.element_type(self.input), self.return_indices_dtype]

    def infer_shape(self) -> list[Shape]:
        shape = list(shape_of(self.input))
        axis = normalize_axis(self.axis, len(shape))
        try:
            _check_count(self.k, shape[axis])
            shape[axis] = self.k
        except ComputedParameter:
            shape[axis] = unknown()
        return [tuple(shape)] * 2

    def reference(self, input: Array) -> tuple[Array, Array]:
        _check_count(self.k, input.shape[self.axis])
        # A stable descending order: flip, sort ascending (stable), and flip back.
        order = np.argsort(
            np.flip(input, self.axis) if self.largest else input, self.axis, kind="stable"
        )
        if self.largest:
            order = input.shape[self.axis] - 1 - np.flip(order, self.axis)
        indices = np.take(order, range(self.k), self.axis)
        return np.take_along_axis(input, indices, self.axis), indices


def _check_count(k: int, size: object) -> None:
    if k < 0:
        raise ValueError(f"k: {k} is negative")
    if isinstance(size, int) and k > size:
        raise ValueError(f"k: {k} is more than the axis' {size} elements")


@operator("NON_ZERO", core=True)
class NonZero(Operator):
    """The int64 indices of the nonzero elements in C order, one column per element.

    The output's shape is `[rank, count]`. NaN is nonzero, -0 is zero. For a scalar, the output has
    no rows, and one column if it is nonzero.
    """

    __slots__ = ()
    data_dependent = True
    input = tensor(NUMBERS | BOOLEANS)

    def infer_element_type(self) -> ElementType:
        return ElementType.INT64

    def infer_shape(self) -> Shape:
        return (len(shape_of(self.input)), unknown())

    def reference(self, input: Array) -> Array:
        return np.argwhere(input).T


@operator("UNIQUE", core=True)
class Unique(Operator):
    """The distinct elements of the input, or with `axis`, its distinct entries along that axis.

    Without `axis`, the input is flattened in C order. The outputs are the values; the index of each
    value's first occurrence; for each element (or entry) of the input, the index of its value; and
    the number of occurrences of each value; the last three are int64 lists. Values are sorted
    (entries lexicographically); without `sorted`, they are in the order of their first occurrences.
    The order of NaNs, and whether they are distinct, is unspecified. A negative axis counts from
    the last one. Source: ONNX's Unique.
    """

    __slots__ = ()
    data_dependent = True
    input = tensor(NUMBERS | BOOLEANS)
    axis = optional_integer()
    sorted = flag(True)

    def infer_element_type(self) -> Sequence[ElementType]:
        return [type(self).input.element_type(self.input), *(ElementType.INT64,) * 3]

    def output_count(self) -> int:
        return 4

    def infer_shape(self) -> Sequence[Shape | None]:
        count = (unknown(),)
        if self.axis is None:
            shape = self.input.type.shape
            return [count, count, (unknown() if shape is None else product(shape),), count]
        sizes = list(shape_of(self.input))
        axis = normalize_axis(self.axis, len(sizes))
        size, sizes[axis] = sizes[axis], count[0]
        return [tuple(sizes), count, (size,), count]

    def reference(self, input: Array) -> Sequence[Array]:
        values, indices, inverse, counts = np.unique(
            input, return_index=True, return_inverse=True, return_counts=True, axis=self.axis
        )
        inverse = inverse.ravel()
        if not self.sorted:
            order = np.argsort(indices)
            values = np.take(values, order, self.axis or 0)
            indices, counts = indices[order], counts[order]
            inverse = np.argsort(order)[inverse]
        return [values, indices, inverse, counts]
