"""Operators of which the elements decide how large the output is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, ElementType, Shape, unknown
from crosschip.ir.dimension import product
from crosschip.ir.types import BOOLEANS, NUMBERS
from crosschip.ops.examples import example, given, random
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.shapes import axis_in
from crosschip.ops.slots import flag, optional_integer, tensor


@operator("NON_ZERO", onnx=("NonZero",), core=True)
class NonZero(Operator):
    """The places of the elements that are not 0, in C order: a column each, of int64.

    The output's shape is `[rank, count]`. NaN is not 0, -0 is. A tensor without axes has no column
    if it is 0, and else one of no indices.
    """

    __slots__ = ()
    input = tensor(NUMBERS | BOOLEANS)
    examples = (
        example(input=random(3, 4, dtype=ElementType.BOOL)),
        example(input=given([[0.0, -1.5], [2.0, 0.0]])),
        example(input=given(np.array([0, 3, 0, -2], np.int32))),
    )

    def infer_element_type(self) -> ElementType:
        return ElementType.INT64

    def infer_shape(self) -> Shape:
        return (len(shape_of(self.input)), unknown())

    def reference(self, input: Array) -> Array:
        return np.argwhere(input).T


@operator("UNIQUE", onnx=("Unique",), core=True)
class Unique(Operator):
    """The different elements of the input, or with `axis`, its different entries along that axis.

    Without `axis`, the input is taken in C order. The outputs are the values; the index at which
    each first occurs; for each element (or entry) of the input, the index of its value; and how
    often each occurs; the last three lists of int64. Values are sorted, entries as lists of their
    elements, unless `sorted` is false: then they are in the order in which they first occur. Where
    NaNs go, and whether they count as one value, is not specified. A negative axis counts from the
    last one. Source: ONNX's Unique.
    """

    __slots__ = ()
    input = tensor(NUMBERS | BOOLEANS)
    axis = optional_integer()
    sorted = flag(True)
    examples = (
        example(input=given([2.0, 1.0, 1.0, 3.0, 2.0])),
        example(input=given([[2, 1, 1], [3, 4, 2]]), sorted=False),
        example(input=given([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), axis=0),
        example(input=given([[3, 1, 3], [1, 1, 1]]), axis=-1, sorted=False),
        example(input=random(7, dtype=ElementType.INT64, low=0, high=3)),
    )

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
        axis = axis_in(self.axis, len(sizes))
        size, sizes[axis] = sizes[axis], count[0]
        return [tuple(sizes), count, (size,), count]

    def reference(self, input: Array, axis: int | None, sorted: bool) -> Sequence[Array]:
        values, indices, inverse, counts = np.unique(
            input, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.ravel()
        if not sorted:
            order = np.argsort(indices)
            values = np.take(values, order, axis or 0)
            indices, counts = indices[order], counts[order]
            inverse = np.argsort(order)[inverse]
        return [values, indices, inverse, counts]
