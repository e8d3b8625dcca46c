"""Matrix products."""

from __future__ import annotations

from typing import Any

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.fusing import fused
from crosschip.importers.paddle.operators.layout import as_matrix
from crosschip.importers.paddle.table import imports
from crosschip.ir import Operand
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import Add, Clip, Mul
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Flatten, Reshape
from crosschip.ops.standard.matrix import Det, MatMul
from crosschip.ops.standard.slicing import Slice

_PADDED = 4
"""The number of rows and columns at the end of weights that Paddle has padded."""


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
    """The older form: the product is multiplied by `alpha`."""
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
    """The older form: the axes of `x` from one on, and those of `y` before one, are summed over."""
    x, y = op.input("X"), op.input("Y")
    x_rows, y_rows = op.integer("x_num_col_dims", 1), op.integer("y_num_col_dims", 1)
    factors = _columns(op, x, x_rows), _matrix(op, y, y_rows)
    if op.rank(y) == y_rows + 1:
        op.make(MatMul, *factors)
    else:
        shape = _joined(op, (x, slice(x_rows)), (y, slice(y_rows, None)))
        op.make(Reshape, op.add(MatMul, *factors), shape)


@imports("fc")
def fc(op: Context) -> None:
    """A matrix product, a bias and an activation, which a pass of Paddle has put together."""
    weights = op.input("W")
    if op.flag("padding_weights", False):
        weights = op.add(Slice, weights, (0, 1), (0, 0), (-_PADDED, -_PADDED))
    factors = _columns(op, op.input("Input"), op.integer("in_num_col_dims", 1)), weights
    bias, fuse = op.optional_input("Bias"), fused(op, "activation_type")
    if bias is not None:
        bias = op.add(Reshape, bias, (-1,))
        op.make(Add, op.add(MatMul, *factors), bias, fuse_code=fuse)
    elif fuse is not Fuse.NONE:
        op.make(Clip, op.add(MatMul, *factors), *fuse.bounds)
    else:
        op.make(MatMul, *factors)


def _columns(op: Context, operand: Operand, axis: int) -> Operand:
    """The operand with the axes from one on as one."""
    last = op.rank(operand) - 1
    return operand if axis == last else op.add(Flatten, operand, axis, last)


def _matrix(op: Context, operand: Operand, axis: int) -> Operand:
    """The operand with the axes before one as rows and the others as columns."""
    if op.rank(operand) == 2 and axis == 1:
        return operand
    return op.add(*as_matrix(op, operand, axis))


def _joined(op: Context, *parts: tuple[Operand, slice]) -> tuple[int, ...] | Operand:
    """The sizes of some axes of one tensor, and then of another."""
    sizes = [size for operand, axes in parts for size in (operand.type.shape or ())[axes]]
    known = [size if isinstance(size, int) else -1 for size in sizes]
    if known.count(-1) <= 1 and 0 not in known:
        return tuple(known)
    return op.add(Concat, parts=[_sizes(op, operand, axes) for operand, axes in parts], axis=0)


def _sizes(op: Context, operand: Operand, axes: slice) -> Operand:
    """The sizes of some axes, which are computed."""
    first, last, _ = axes.indices(op.rank(operand))
    return op.add(Slice, op.add(ShapeOf, operand), (0,), (first,), (last,))


@imports("determinant")
def determinant(op: Context) -> None:
    op.make(Det, op.input("Input"))
