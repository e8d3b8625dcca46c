"""Boxes of x_min, y_min, x_max, y_max, and what is computed of them."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import GatherND
from crosschip.ops.standard.joining import Concat, Unstack
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import Or, Where
from crosschip.ops.standard.slicing import Slice


def sides(op: Context, boxes: Operand) -> tuple[Operand, ...]:
    """The four numbers of boxes, which are their last axis, apart."""
    return op.add_all(Unstack, boxes, -1, 4)


def picked(op: Context, rows: Operand, places: Operand) -> Operand:
    """Of the rows [N, M, …] those at places [N, …] of the second axis."""
    flat = op.add(Reshape, places, (0, -1, 1))
    flat_rows = op.add(GatherND, rows, flat, batch_dims=1)
    if op.rank(places) == 2:
        return flat_rows
    parts = [op.add(ShapeOf, operand, ElementType.INT64) for operand in (places, rows)]
    row = op.add(Slice, parts[1], (0,), (2,), (2**31 - 1,))
    return op.add(Reshape, flat_rows, op.add(Concat, parts=[parts[0], row], axis=0))


def areas(op: Context, boxes: Operand, is_normalized: bool) -> Operand:
    """The areas of boxes; 0 of one turned inside out.

    Where they are not normalized, the last pixel belongs to them.
    """
    left, top, right, bottom = sides(op, boxes)
    extra = 0.0 if is_normalized else 1.0
    width = op.add(Add, op.add(Sub, right, left), extra)
    height = op.add(Add, op.add(Sub, bottom, top), extra)
    is_inside_out = op.add(Or, op.add(Less, right, left), op.add(Less, bottom, top))
    zero = left.type.element_type.dtype.type(0)
    return op.add(Where, is_inside_out, zero, op.add(Mul, width, height))


def overlaps(op: Context, boxes: Operand, is_normalized: bool) -> Operand:
    """The area common to two boxes over that of either, [..., M, M] for boxes [..., M, 4]."""
    rank = op.rank(boxes)
    of_rows, of_columns = (op.add(Unsqueeze, boxes, (axis,)) for axis in (rank - 1, rank - 2))
    left, top, right, bottom = sides(op, of_rows)
    other_left, other_top, other_right, other_bottom = sides(op, of_columns)
    extra = 0.0 if is_normalized else 1.0
    width = op.add(Sub, op.add(Min, right, other_right), op.add(Max, left, other_left))
    height = op.add(Sub, op.add(Min, bottom, other_bottom), op.add(Max, top, other_top))
    common = op.add(Mul, op.add(Add, width, extra), op.add(Add, height, extra))
    area = areas(op, boxes, is_normalized)
    either = op.add(Add, *(op.add(Unsqueeze, area, (axis,)) for axis in (rank - 1, rank - 2)))
    share = op.add(Div, common, op.add(Sub, either, common))
    are_apart = op.add(
        Or,
        op.add(Or, op.add(Less, right, other_left), op.add(Less, other_right, left)),
        op.add(Or, op.add(Less, bottom, other_top), op.add(Less, other_bottom, top)),
    )
    zero = left.type.element_type.dtype.type(0)
    return op.add(Where, are_apart, zero, share)
