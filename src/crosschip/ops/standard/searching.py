"""Searches for elements: maximum, minimum, top k, nonzero, unique and in sorted sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape, unknown
from crosschip.ir.dimension import product
from crosschip.ir.types import BOOLEANS, FLOATS, NUMBERS
from crosschip.ops.definition.kinds import aligned_row_axis
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import broadcast, normalize_axis
from crosschip.ops.definition.slots import (
    ComputedParameter,
    flag,
    index_type,
    integer,
    optional_integer,
    tensor,
)
from crosschip.ops.standard.comparison import Less, LessEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.logical import BitwiseNot
from crosschip.ops.standard.reduction import ReduceSum
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


@operator("SEARCH_SORTED")
class SearchSorted(Operator):
    """For each value the number of elements of an ascending sequence that are less than it.

    With `right`, also elements equal to the value are counted. So the value can be inserted before
    the element with this index, and the sequence remains ascending. The result is an int32 or
    int64, as `dtype` says.

    `sorted_sequence` is one sequence for all `values`, or `[…, n]` for values `[…, m]`; the axes
    before the last are broadcast as in NumPy. If a sequence is not ascending or contains NaN, the
    results for it are unspecified, and so is the result for a value that is NaN.

    Source: `numpy.searchsorted`, OpenVINO's SearchSorted.
    """

    __slots__ = ()
    sorted_sequence = tensor(NUMBERS)
    values = tensor(NUMBERS, like="sorted_sequence")
    right = flag(False)
    dtype = index_type(ElementType.INT64)

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        sequence, values = shape_of(self.sorted_sequence), shape_of(self.values)
        if not sequence:
            raise ValueError("sorted_sequence: is a scalar, but must have at least one axis")
        if len(sequence) == 1:
            return values
        if not values:
            raise ValueError("values: is a scalar, but there are several sequences")
        return broadcast((*sequence[:-1], 1), values, slot="values")

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        is_within_sequence = axes[0] == len(shape_of(self.sorted_sequence)) - 1
        return None if is_within_sequence else aligned_row_axis(self, axes)

    def reference(self, sorted_sequence: Array, values: Array) -> Array:
        side: Literal["left", "right"] = "right" if self.right else "left"
        if sorted_sequence.ndim == 1:
            return np.searchsorted(sorted_sequence, values, side)
        batch = np.broadcast_shapes(sorted_sequence.shape[:-1], values.shape[:-1])
        sequences = np.broadcast_to(sorted_sequence, (*batch, sorted_sequence.shape[-1]))
        values = np.broadcast_to(values, (*batch, values.shape[-1]))
        output = np.empty(values.shape, np.int64)
        for index in np.ndindex(batch):
            output[index] = np.searchsorted(sequences[index], values[index], side)
        return output

    def decompose(self, b: Builder) -> Operand:
        sequence = self.sorted_sequence
        if len(shape_of(sequence)) > 1:
            sequence = b.add(Unsqueeze, sequence, (-2,))
        values = b.add(Unsqueeze, self.values, (-1,))
        is_before = b.add(LessEqual if self.right else Less, sequence, values)
        return b.add(ReduceSum, b.add(Cast, is_before, self.dtype), (-1,), keepdim=False)
