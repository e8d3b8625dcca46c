"""Matrix products."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, Operand, Shape
from crosschip.ir.dimension import exact_quotient, product
from crosschip.ir.types import FLOATS, NUMBERS
from crosschip.ops.convolution import check_bias
from crosschip.ops.elementwise import Add
from crosschip.ops.layout import Reshape
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.shapes import broadcast, same
from crosschip.ops.slots import flag, fuse, optional_tensor, tensor


@operator("MAT_MUL")
class MatMul(Operator):
    """The matrix product of the last two axes, as `numpy.matmul`; the axes before broadcast.

    `transpose_x` and `transpose_y` swap the last two axes of an input first; an input of one axis
    is a row (x) or a column (y) and loses that axis again in the output.
    """

    __slots__ = ()
    x = tensor(NUMBERS)
    y = tensor(NUMBERS, like="x")
    transpose_x = flag(False)
    transpose_y = flag(False)

    def infer_shape(self) -> Shape:
        x, y = shape_of(self.x), shape_of(self.y)
        if not x or not y:
            raise ValueError(f"{'y' if x else 'x'}: a scalar has no matrix product")
        left = (1, *x) if len(x) == 1 else x
        right = (*y, 1) if len(y) == 1 else y
        rows, inner = _matrix(left, self.transpose_x and len(x) > 1)
        inner_y, columns = _matrix(right, self.transpose_y and len(y) > 1)
        same(inner, inner_y, "y: the inner sizes of x and y")
        batch = broadcast(left[:-2], right[:-2]) if len(left) + len(right) > 4 else ()
        return (*batch, *(() if len(x) == 1 else (rows,)), *(() if len(y) == 1 else (columns,)))

    def reference(self, x: Array, y: Array, transpose_x: bool, transpose_y: bool) -> Array:
        left = x.swapaxes(-1, -2) if transpose_x and x.ndim > 1 else x
        right = y.swapaxes(-1, -2) if transpose_y and y.ndim > 1 else y
        return np.matmul(left, right)


@operator("FULLY_CONNECTED")
class FullyConnected(Operator):
    """`output = input @ weight.T + bias`, with `weight` of shape [num_units, input_size].

    An input of more than two axes is first flattened to [elements / input_size, input_size].
    """

    __slots__ = ()
    input = tensor(FLOATS)
    weight = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    fuse_code = fuse()

    def infer_shape(self) -> Shape:
        input, weight = shape_of(self.input), shape_of(self.weight)
        if len(weight) != 2:
            raise ValueError(f"weight: has {len(weight)} axes, but must have 2")
        if len(input) < 2:
            raise ValueError(f"input: has {len(input)} axes, but must have at least 2")
        if len(input) == 2:
            same(input[1], weight[1], "weight: its second size, and the input's")
        check_bias(self.bias.type.shape if self.bias else None, weight[0])
        return (exact_quotient(product(input), weight[1]), weight[0])

    def reference(self, input: Array, weight: Array, bias: Array | None) -> Array:
        output = input.reshape(-1, weight.shape[1]) @ weight.T
        return output if bias is None else output + bias

    def decompose(self, b: Builder) -> Operand | None:
        size = shape_of(self.weight)[1]
        if not isinstance(size, int):
            return None
        flat = self.input
        if len(shape_of(flat)) > 2:
            flat = b.add(Reshape, flat, (-1, size))
        output = b.add(MatMul, flat, self.weight, transpose_y=True)
        return output if self.bias is None else b.add(Add, output, self.bias)


def _matrix(shape: Shape, transpose: bool) -> Shape:
    return (shape[-1], shape[-2]) if transpose else (shape[-2], shape[-1])
