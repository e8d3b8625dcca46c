"""Matrix products and the determinant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.dimension import exact_quotient, product
from crosschip.ir.types import FLOATS, NUMBERS
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.quantized import check_bias, check_quantized_bias
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import broadcast, require_rank, unify
from crosschip.ops.definition.slots import flag, fuse, integer, optional_tensor, tensor
from crosschip.ops.standard.arithmetic import Add, Div, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.reduction import ReduceProd, ReduceSum
from crosschip.ops.standard.searching import ArgMax
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Abs


@operator("MAT_MUL", core=True)
class MatMul(Operator):
    """The matrix product of the last two axes: `output[…, i, j] = sum(x[…, i, k] * y[…, k, j])`.

    The axes before the last two broadcast, as in NumPy. `transpose_x` and `transpose_y` first swap
    the last two axes of an input. An input of rank 1 is a row (`x`) or a column (`y`), is not
    transposed, and its axis is missing in the output. A scalar is an error.

    The output has the element type of the inputs: integers wrap around on overflow. Sums over no
    elements are 0; a device may reject a run with such sums. Products are added in any order.

    Source: `numpy.matmul`, https://numpy.org/doc/stable/reference/generated/numpy.matmul.html.
    """

    __slots__ = ()
    x = tensor(NUMBERS)
    y = tensor(NUMBERS, like="x")
    transpose_x = flag(False)
    transpose_y = flag(False)

    def multiply_adds(self) -> Dim:
        shape = shape_of(self.x)
        inner = shape[-2 if self.transpose_x and len(shape) > 1 else -1]
        return product(shape_of(self.outputs[0])) * inner

    def infer_shape(self) -> Shape:
        return product_shape(shape_of(self.x), shape_of(self.y), self.transpose_x, self.transpose_y)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        x_axis, y_axis = axes[:2]
        x, y = shape_of(self.x), shape_of(self.y)
        rank = max(len(x), len(y))
        if min(len(x), len(y)) < 2:
            return None
        rows_of_x, columns_of_y = len(x) - 1 - (not self.transpose_x), len(y) - 1 - self.transpose_y
        if y_axis is None and x_axis == rows_of_x:
            return rank - 2
        if x_axis is None and y_axis == columns_of_y:
            return rank - 1
        return self._batch_axis(x, y, x_axis, y_axis)

    def _batch_axis(self, x: Shape, y: Shape, x_axis: int | None, y_axis: int | None) -> int | None:
        """Return the axis of rows if it is one of the axes that broadcast."""
        sides = [(x, x_axis), (y, y_axis)]
        distances = {len(shape) - axis for shape, axis in sides if axis is not None}
        if len(distances) != 1 or min(distances) < 3:
            return None
        (distance,) = distances
        for shape, axis in sides:
            if axis is None and distance <= len(shape) and shape[-distance] != 1:
                return None
        return max(len(x), len(y)) - distance

    def reference(self, x: Array, y: Array) -> Array:
        left = x.swapaxes(-1, -2) if self.transpose_x and x.ndim > 1 else x
        right = y.swapaxes(-1, -2) if self.transpose_y and y.ndim > 1 else y
        return np.matmul(left, right)


@operator("FULLY_CONNECTED")
class FullyConnected(Operator):
    """`output = input @ transpose(weight) + bias`, with `weight` of [num_units, input_size].

    An input of more than two axes is first flattened to [elements / input_size, input_size]; the
    output is [elements / input_size, num_units]. The optional bias has one element per unit. The
    activation `fuse_code` is applied to the result.

    A quantized bias is int32 and symmetric, and its scale is the product of the input's and the
    weight's, within the rounding of float32: one for the tensor, or one per unit if the weight has
    a scale per unit (its axis 0).
    """

    __slots__ = ()
    input = tensor(FLOATS)
    weight = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    fuse_code = fuse()

    def multiply_adds(self) -> Dim:
        return product(shape_of(self.outputs[0])) * shape_of(self.weight)[1]

    def infer_shape(self) -> Shape:
        check_quantized_bias(self.input, self.weight, self.bias)
        input, weight = shape_of(self.input), shape_of(self.weight)
        if len(weight) != 2:
            raise ValueError(f"weight: has {len(weight)} axes, but must have 2")
        if len(input) < 2:
            raise ValueError(f"input: has {len(input)} axes, but must have at least 2")
        check_bias(self.bias.type.shape if self.bias else None, weight[0])
        if len(input) == 2:
            unify(input[1], weight[1], "weight: its second size, and the input's")
            return (input[0], weight[0])
        elements, size = product(input), weight[1]
        if size == 0 or (isinstance(elements, int) and isinstance(size, int) and elements % size):
            raise ValueError(f"weight: {elements} elements do not make rows of {size}")
        return (exact_quotient(elements, size), weight[0])

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        alone = axes[0] == 0 and set(axes[1:]) <= {None}
        return 0 if alone and len(shape_of(self.input)) == 2 else None

    def reference(self, input: Array, weight: Array, bias: Array | None) -> Array:
        rows = input if input.ndim == 2 else input.reshape(-1, weight.shape[1])
        output = rows @ weight.T
        return output if bias is None else output + bias

    def decompose(self, b: Builder) -> Operand | None:
        rows = self.input
        if len(shape_of(rows)) > 2:
            size = shape_of(self.weight)[1]
            if not isinstance(size, int):
                return None
            rows = b.add(Reshape, rows, (-1, size))
        output = b.add(MatMul, rows, self.weight, transpose_y=True)
        return output if self.bias is None else b.add(Add, output, self.bias)


_BITS = (2, 4, 8)


@operator("MAT_MUL_N_BITS")
class MatMulNBits(Operator):
    """A matrix product with weights of few bits: `output = x @ transpose(weight) + bias`.

    The weight has `size` integers of `bits` bits (2, 4 or 8) for each output column, in blocks of
    `block_size`; the last block may extend beyond `size`. It is stored as uint8 [rows, blocks,
    block_size * bits / 8]; the first of several integers in a byte has the lowest bits. They
    represent `(integer - zero_point) * scale`, with a scale and a zero point per block, [rows,
    blocks]. Zero points have the type of the scales, or are integers of `bits` bits, packed in the
    same way: uint8 [rows, bytes]. If omitted, they are `2 ** (bits - 1)`.

    `accuracy_level` is the precision in which a device must represent `x`: its own type (0 and 1),
    float16 (2), bfloat16 (3), or int8 with a scale per block (4). The reference does not round `x`.

    Source: ONNX Runtime's MatMulNBits.
    """

    __slots__ = ()
    x = tensor(FLOATS)
    weight = tensor({ElementType.UINT8})
    scale = tensor(FLOATS, like="x")
    zero_point = optional_tensor(FLOATS | {ElementType.UINT8})
    bias = optional_tensor(FLOATS, like="x")
    size = integer()
    block_size = integer()
    bits = integer(4)
    accuracy_level = integer(0)

    def multiply_adds(self) -> Dim:
        return product(shape_of(self.outputs[0])) * self.size

    def infer_shape(self) -> Shape:
        x, weight = shape_of(self.x), require_rank(shape_of(self.weight), 3, "weight")
        if not x:
            raise ValueError("x: a scalar has no matrix product")
        if self.bits not in _BITS:
            raise ValueError(f"bits: {self.bits} is not one of {list(_BITS)}")
        if self.block_size < 1 or self.block_size * self.bits % 8:
            raise ValueError(f"block_size: {self.block_size} integers do not fill bytes")
        blocks = -(-self.size // self.block_size)
        unify(x[-1], self.size, "x: its last size, and `size`")
        unify(weight[1], blocks, "weight: its second size, and the number of blocks")
        unify(weight[2], self.block_size * self.bits // 8, "weight: its third size, and its bytes")
        self._check_each("scale", self.scale, weight[0], blocks)
        if self.zero_point is not None:
            packed = self.zero_point.type.element_type is ElementType.UINT8
            count = -(-blocks * self.bits // 8) if packed else blocks
            self._check_each("zero_point", self.zero_point, weight[0], count)
        check_bias(self.bias.type.shape if self.bias else None, weight[0])
        return (*x[:-1], weight[0])

    def _check_each(self, slot: str, operand: Operand, rows: Dim, count: int) -> None:
        shape = require_rank(shape_of(operand), 2, slot)
        unify(shape[0], rows, f"{slot}: its first size, and the weight's")
        unify(shape[1], count, f"{slot}: its second size, and what the blocks need")

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        last = len(shape_of(self.x)) - 1
        return axes[0] if axes[0] != last and set(axes[1:]) <= {None} else None

    def reference(
        self, x: Array, weight: Array, scale: Array, zero_point: Array | None, bias: Array | None
    ) -> Array:
        zeros: Array | int = 2 ** (self.bits - 1)
        if zero_point is not None:
            zeros = zero_point
            if zeros.dtype == np.uint8:
                zeros = self._unpack(zeros)[:, : scale.shape[1]]
            zeros = zeros[..., None]
        reals = (self._unpack(weight) - zeros) * scale[..., None]
        padded_size = scale.shape[1] * self.block_size
        rows = reals.reshape(len(weight), padded_size)[:, : self.size].astype(x.dtype)
        output = x @ rows.T
        return output if bias is None else output + bias

    def _unpack(self, packed: Array) -> Array:
        shifts = np.arange(0, 8, self.bits, dtype=np.uint8)
        parts = packed[..., None] >> shifts & (2**self.bits - 1)
        count = packed.shape[-1] * len(shifts)
        return parts.reshape(*packed.shape[:-1], count).astype(np.float32)

    def decompose(self, b: Builder) -> Operand:
        rows = shape_of(self.weight)[0]
        blocks = -(-self.size // self.block_size)
        element_type = self.x.type.element_type
        zeros = b.constant(np.array(2 ** (self.bits - 1)).astype(element_type.dtype))
        if self.zero_point is not None:
            zeros = self.zero_point
            if zeros.type.element_type is ElementType.UINT8:
                numbers = self._build_unpacked(b, zeros)
                zeros = b.add(Cast, b.add(Slice, numbers, (1,), (0,), (blocks,)), element_type)
            elif zeros.type.element_type is not element_type:
                zeros = b.add(Cast, zeros, element_type)
            zeros = b.add(Unsqueeze, zeros, (2,))
        steps = b.add(Sub, b.add(Cast, self._build_unpacked(b, self.weight), element_type), zeros)
        reals = b.add(Mul, steps, b.add(Unsqueeze, self.scale, (2,)))
        padded_size = blocks * self.block_size
        matrix = b.add(Reshape, reals, (rows if isinstance(rows, int) else -1, padded_size))
        if padded_size != self.size:
            matrix = b.add(Slice, matrix, (1,), (0,), (self.size,))
        output = b.add(MatMul, self.x, matrix, transpose_y=True)
        return output if self.bias is None else b.add(Add, output, self.bias)

    def _build_unpacked(self, b: Builder, packed: Operand) -> Operand:
        """Build the integers packed in bytes, unpacked along the last axis, in int32."""
        *outer, count = shape_of(packed)
        wide = b.add(Cast, packed, ElementType.INT32)
        if self.bits == 8:
            return wide
        span = np.array(2**self.bits, np.int32)
        parts = []
        for _ in range(8 // self.bits):
            parts.append(b.add(Unsqueeze, b.add(Mod, wide, span), (-1,)))
            wide = b.add(Div, wide, span)
        assert isinstance(count, int), "inference compares it with what the blocks need"
        sizes = [size if isinstance(size, int) else 0 for size in outer]
        return b.add(Reshape, b.add(Concat, parts, axis=-1), (*sizes, count * 8 // self.bits))


def product_shape(
    x: Shape, y: Shape, transpose_x: bool = False, transpose_y: bool = False
) -> Shape:
    """Return the shape of a matrix product; raise ValueError if it is undefined."""
    if not x or not y:
        raise ValueError(f"{'y' if x else 'x'}: a scalar has no matrix product")
    left = (1, *x) if len(x) == 1 else x
    right = (*y, 1) if len(y) == 1 else y
    rows, inner = _matrix(left, transpose_x and len(x) > 1)
    inner_y, columns = _matrix(right, transpose_y and len(y) > 1)
    unify(inner, inner_y, "y: the inner sizes of x and y")
    batch = broadcast(left[:-2], right[:-2], slot="y") if len(left) + len(right) > 4 else ()
    return (*batch, *(() if len(x) == 1 else (rows,)), *(() if len(y) == 1 else (columns,)))


def _matrix(shape: Shape, transpose: bool) -> Shape:
    return (shape[-1], shape[-2]) if transpose else (shape[-2], shape[-1])


@operator("DET")
class Det(Operator):
    """The determinant of the square matrix on the last two axes; the other axes stay.

    The determinant of an empty matrix is 1; that of a matrix with NaN or an infinity is
    unspecified. It is computed by elimination with partial pivoting, whose rounding errors grow
    with the size of the elements.
    """

    __slots__ = ()
    input = tensor(FLOATS)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have at least 2")
        unify(shape[-2], shape[-1], "input: its last two sizes")
        return shape[:-2]

    def reference(self, input: Array) -> Array:
        return np.asarray(np.linalg.det(input))

    def decompose(self, b: Builder) -> Operand | None:
        size = shape_of(self.input)[-1]
        if not isinstance(size, int):
            return None
        if size < 2:
            return b.add(ReduceProd, self.input, (-2, -1), keepdim=False)
        remaining, rows, pivots = self.input, [], []
        for column in range(size):
            row, pivot, remaining = _eliminate(b, remaining, column, size)
            rows.append(row)
            pivots.append(pivot)
        product = b.add(ReduceProd, b.add(Concat, pivots, axis=-1), (-2, -1), keepdim=False)
        return b.add(Mul, product, _sign(b, rows, self.input.type.element_type))


def _eliminate(
    b: Builder, matrix: Operand, column: int, size: int
) -> tuple[Operand, Operand, Operand]:
    """Build the one-hot choice of a column's pivot row, the pivot, and the remaining matrix.

    The remaining matrix is the matrix minus multiples of the pivot row, so that the column and the
    pivot row become 0. That row is not chosen again unless all other elements are 0.
    """
    dtype = matrix.type.element_type.dtype
    elements = b.add(Slice, matrix, (-1,), (column,), (column + 1,))
    pivot_index = b.add(ArgMax, b.add(Abs, elements), -2)
    is_pivot = b.add(Equal, pivot_index, np.arange(size).reshape(-1, 1))
    zero, one = b.constant(np.zeros((), dtype)), b.constant(np.ones((), dtype))
    row = b.add(ReduceSum, b.add(Where, is_pivot, matrix, zero), (-2,))
    pivot = b.add(Slice, row, (-1,), (column,), (column + 1,))
    divisor = b.add(Where, b.add(Equal, pivot, zero), one, pivot)
    multiples = b.add(Mul, b.add(Div, elements, divisor), row)
    return pivot_index, pivot, b.add(Sub, matrix, multiples)


def _sign(b: Builder, rows: Sequence[Operand], dtype: ElementType) -> Operand:
    """Build the sign of a permutation (1 if even, else -1) from all pairs' order."""
    size = len(rows)
    later, earlier = b.add(Concat, rows, axis=-1), b.add(Concat, rows, axis=-2)
    one = b.constant(np.ones((), dtype.dtype))
    descending = b.constant((1 - 2 * np.triu(np.ones((size, size)), 1)).astype(dtype.dtype))
    signs = b.add(Where, b.add(Less, earlier, later), one, descending)
    return b.add(ReduceProd, signs, (-2, -1), keepdim=False)
