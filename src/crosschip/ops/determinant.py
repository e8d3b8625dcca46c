"""The determinant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.comparison import Equal, Less
from crosschip.ops.elementwise import Div, Mul, Sub
from crosschip.ops.examples import example, random
from crosschip.ops.joining import Concat
from crosschip.ops.logical import Where
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.reduction import ReduceProd, ReduceSum
from crosschip.ops.shapes import same
from crosschip.ops.slicing import Slice
from crosschip.ops.slots import tensor
from crosschip.ops.sorting import ArgMax
from crosschip.ops.unary import Abs


@operator("DET", onnx=["Det"])
class Det(Operator):
    """The determinant of the square matrix on the last two axes; the axes before are kept.

    That of a matrix of no rows is 1. A NaN makes it NaN. It is computed by elimination with
    partial pivoting, whose rounding errors grow with the size of the matrix' elements.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    examples = (
        example(input=random(2, 2)),
        example(input=random(3, 1, 1)),
        example(input=random(2, 3, 4, 4)),
        example(input=random(6, 6)),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 2")
        same(shape[-2], shape[-1], "input: its last two sizes")
        return shape[:-2]

    def reference(self, input: Array) -> Array:
        return np.asarray(np.linalg.det(input))

    def decompose(self, b: Builder) -> Operand | None:
        size = shape_of(self.input)[-1]
        if not isinstance(size, int):
            return None
        if size < 2:
            return b.add(ReduceProd, self.input, (-2, -1), keepdim=False)
        rest, rows, pivots = self.input, [], []
        for column in range(size):
            row, pivot, rest = _eliminated(b, rest, column, size)
            rows.append(row)
            pivots.append(pivot)
        product = b.add(ReduceProd, b.add(Concat, pivots, axis=-1), (-2, -1), keepdim=False)
        return b.add(Mul, product, _sign(b, rows, self.input.type.element_type))


def _eliminated(
    b: Builder, matrix: Operand, column: int, size: int
) -> tuple[Operand, Operand, Operand]:
    """Which row has the greatest element in a column, that element, and the rest.

    The rest is the matrix minus multiples of that row, so that the column becomes 0, and so does
    the row: it will not be found again unless all elements left are 0.
    """
    dtype = matrix.type.element_type.dtype
    elements = b.add(Slice, matrix, (-1,), (column,), (column + 1,))
    place = b.add(ArgMax, b.add(Abs, elements), -2)
    found = b.add(Equal, place, np.arange(size).reshape(-1, 1))
    zero, one = b.constant(np.zeros((), dtype)), b.constant(np.ones((), dtype))
    row = b.add(ReduceSum, b.add(Where, found, matrix, zero), (-2,))
    pivot = b.add(Slice, row, (-1,), (column,), (column + 1,))
    divisor = b.add(Where, b.add(Equal, pivot, zero), one, pivot)
    multiples = b.add(Mul, b.add(Div, elements, divisor), row)
    return place, pivot, b.add(Sub, matrix, multiples)


def _sign(b: Builder, rows: Sequence[Operand], dtype: ElementType) -> Operand:
    """1 if rows are an even permutation, else -1: the sign of all differences' product."""
    size = len(rows)
    later, earlier = b.add(Concat, rows, axis=-1), b.add(Concat, rows, axis=-2)
    one = b.constant(np.ones((), dtype.dtype))
    descending = b.constant((1 - 2 * np.triu(np.ones((size, size)), 1)).astype(dtype.dtype))
    signs = b.add(Where, b.add(Less, earlier, later), one, descending)
    return b.add(ReduceProd, signs, (-2, -1), keepdim=False)
