"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosschip.importers.einsum import contraction
from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.operators.layout import as_matrix
from crosschip.importers.paddle.operators.reduction import norm
from crosschip.ir import Builder, ElementType, Operand, UnsupportedError
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import Det, MatMul
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.searching import ArgMax
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Abs

_PADDED = 4
"""The number of padding rows and columns of weights with `padding_weights`."""


@imports("matmul_v2", "bmm")
def matmul_v2(op: Context) -> None:
    op.make(
        MatMul,
        op.input("X"),
        op.input("Y"),
        transpose_x=op.flag("trans_x", False),
        transpose_y=op.flag("trans_y", False),
    )


@imports("matmul")
def matmul(op: Context) -> None:
    """Import `matmul`: the older form, with a factor `alpha`."""
    op.expect("head_number", 1, 0)
    x, y, alpha = op.input("X"), op.input("Y"), op.real("alpha", 1.0)
    transposed: dict[str, Any] = {
        "transpose_x": op.flag("transpose_X", False),
        "transpose_y": op.flag("transpose_Y", False),
    }
    if alpha == 1.0:
        op.make(MatMul, x, y, **transposed)
    else:
        op.make(Mul, op.add(MatMul, x, y, **transposed), alpha)


@imports("mul")
def mul(op: Context) -> None:
    """Contract `x`'s axes from `x_num_col_dims` on with `y`'s first axes: the oldest product."""
    x, y = op.input("X"), op.input("Y")
    x_rows, y_rows = op.integer("x_num_col_dims", 1), op.integer("y_num_col_dims", 1)
    factors = _columns(op, x, x_rows), _matrix(op, y, y_rows)
    if op.rank(y) == y_rows + 1:
        op.make(MatMul, *factors)
    else:
        shape = _concat_sizes(op, (x, slice(x_rows)), (y, slice(y_rows, None)))
        op.make(Reshape, op.add(MatMul, *factors), shape)


@imports("fc")
def fc(op: Context) -> None:
    """Import `fc`: a matrix product with fused bias and activation, created by a pass of Paddle."""
    weights = op.input("W")
    if op.flag("padding_weights", False):
        weights = op.add(Slice, weights, (0, 1), (0, 0), (-_PADDED, -_PADDED))
    factors = _columns(op, op.input("Input"), op.integer("in_num_col_dims", 1)), weights
    bias, fuse = op.optional_input("Bias"), op.fuse_code("activation_type")
    if bias is not None:
        bias = op.add(Reshape, bias, (-1,))
        op.make(Add, op.add(MatMul, *factors), bias, fuse_code=fuse)
    elif fuse is not Fuse.NONE:
        op.make(Clip, op.add(MatMul, *factors), *fuse.bounds)
    else:
        op.make(MatMul, *factors)


def _columns(op: Context, operand: Operand, axis: int) -> Operand:
    """Flatten the axes from `axis` on."""
    last = op.rank(operand) - 1
    return operand if axis == last else op.add(Flatten, operand, axis, last)


def _matrix(op: Context, operand: Operand, axis: int) -> Operand:
    """Reshape to a matrix: flatten the axes before `axis`, and those from `axis` on."""
    if op.rank(operand) == 2 and axis == 1:
        return operand
    return op.add(*as_matrix(op, operand, axis))


def _concat_sizes(op: Context, *parts: tuple[Operand, slice]) -> tuple[int, ...] | Operand:
    """Return the concatenated sizes of axis ranges of tensors; one unknown size becomes -1."""
    sizes = [size for operand, axes in parts for size in (operand.type.shape or ())[axes]]
    static = [size if isinstance(size, int) else -1 for size in sizes]
    if static.count(-1) <= 1 and 0 not in static:
        return tuple(static)
    ranges = []
    for operand, axes in parts:
        first, last, _ = axes.indices(op.rank(operand))
        ranges.append(op.add(Slice, op.add(ShapeOf, operand), (0,), (first,), (last,)))
    return op.add(Concat, parts=ranges, axis=0)


@imports("determinant")
def determinant(op: Context) -> None:
    op.make(Det, op.input("Input"))


@imports("inverse")
def inverse(op: Context) -> None:
    """Invert square matrices by Gauss-Jordan elimination with partial pivoting."""
    x = op.input("Input")
    rows = ragged.arange(op, ragged.size(op, x, -1))
    element = x.type.element_type
    unit = op.as_type(op.add(Equal, op.add(Unsqueeze, rows, (1,)), rows), element)
    unit = op.add(Expand, unit, op.shape(x))

    def step(b: Builder, state: Operand, slices: Sequence[Operand]) -> Sequence[Operand]:
        column, numbers = slices
        elements = b.add(Squeeze, b.add(Gather, state, column, -1), (-1,))
        size = b.add(
            Where, b.add(Less, numbers, column), element.dtype.type(-1), b.add(Abs, elements)
        )
        pivot_row = b.add(ArgMax, size, -1, keepdim=True, dtype=ElementType.INT64)
        swapped = b.add(Where, b.add(Equal, numbers, pivot_row), column, numbers)
        order = b.add(Where, b.add(Equal, numbers, column), pivot_row, swapped)
        is_source = b.add(Equal, b.add(Unsqueeze, order, (-1,)), numbers)
        state = b.add(MatMul, b.add(Cast, is_source, element), state)
        pivots = b.add(Gather, state, column, -1)
        pivot_rows = b.add(Gather, state, column, -2)
        pivot_rows = b.add(Div, pivot_rows, b.add(Gather, pivot_rows, column, -1))
        eliminated = b.add(Sub, state, b.add(Mul, pivots, pivot_rows))
        is_pivot_row = b.add(Unsqueeze, b.add(Equal, numbers, column), (-1,))
        return (b.add(Where, is_pivot_row, pivot_rows, eliminated),)

    size = op.add(Reshape, ragged.size(op, x, -1), (1,))
    square = op.add(Concat, parts=[size, size], axis=0)
    scanned = [op.add(Unsqueeze, rows, (1,)), op.add(Expand, rows, square)]
    (reduced,) = op.scan(op.add(Concat, parts=[x, unit], axis=-1), scanned, step)
    _, right = op.add_all(Split, reduced, -1, _halves(op, x))
    op.define(right, "Output")


def _halves(op: Context, x: Operand) -> tuple[int, int]:
    size = (x.type.shape or (None,))[-1]
    if not isinstance(size, int):
        raise UnsupportedError(f"Input: {x.type} must have a known size to be inverted")
    return size, size


@imports("dot")
def dot(op: Context) -> None:
    """Import `dot`: the dot products along the last axis."""
    x, y = op.input("X"), op.input("Y")
    # Paddle 2.6 and 3 remove the last axis.
    op.make(ReduceSum, op.add(Mul, x, y), (-1,), keepdim=False)


@imports("mv")
def mv(op: Context) -> None:
    op.make(MatMul, op.input("X"), op.input("Vec"))


@imports("addmm")
def addmm(op: Context) -> None:
    product = op.add(MatMul, op.input("X"), op.input("Y"))
    product = op.add(Mul, product, op.real("Alpha", 1.0))
    op.make(Add, op.add(Mul, op.input("Input"), op.real("Beta", 1.0)), product)


@imports("dist")
def dist(op: Context) -> None:
    """Import `dist`: the p-norm of the difference."""
    norm(op, op.add(Sub, op.input("X"), op.input("Y")), op.real("p", 2.0), (), keepdim=False)


@imports("einsum")
def einsum(op: Context) -> None:
    op.define(contraction(op, op.text("equation"), op.inputs("Operands")))
