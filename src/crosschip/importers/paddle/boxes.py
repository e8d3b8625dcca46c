"""Coordinates, areas and overlaps of boxes (x_min, y_min, x_max, y_max)."""

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


def split_coordinates(op: Context, boxes: Operand) -> tuple[Operand, ...]:
    """Split boxes [..., 4] into the four coordinates [...]."""
    return op.add_all(Unstack, boxes, -1, 4)


def gather_rows(op: Context, rows: Operand, indices: Operand) -> Operand:
    """Gather from `rows` [N, M, …] along axis 1 at `indices` [N, …], for each N."""
    flat_indices = op.add(Reshape, indices, (0, -1, 1))
    flat_rows = op.add(GatherND, rows, flat_indices, batch_dims=1)
    if op.rank(indices) == 2:
        return flat_rows
    parts = [op.add(ShapeOf, operand, ElementType.INT64) for operand in (indices, rows)]
    row = op.add(Slice, parts[1], (0,), (2,), (2**31 - 1,))
    return op.add(Reshape, flat_rows, op.add(Concat, parts=[parts[0], row], axis=0))


def box_areas(op: Context, boxes: Operand, is_normalized: bool) -> Operand:
    """Return the areas of boxes; 0 if a maximum is below its minimum.

    Boxes that are not normalized include their last pixel.
    """
    left, top, right, bottom = split_coordinates(op, boxes)
    extra = 0.0 if is_normalized else 1.0
    width = op.add(Add, op.add(Sub, right, left), extra)
    height = op.add(Add, op.add(Sub, bottom, top), extra)
    is_inverted = op.add(Or, op.add(Less, right, left), op.add(Less, bottom, top))
    zero = left.type.element_type.dtype.type(0)
    return op.add(Where, is_inverted, zero, op.add(Mul, width, height))


def pairwise_iou(op: Context, boxes: Operand, is_normalized: bool) -> Operand:
    """Return the intersection over union of all pairs, [..., M, M] for boxes [..., M, 4]."""
    rank = op.rank(boxes)
    row_boxes, column_boxes = (op.add(Unsqueeze, boxes, (axis,)) for axis in (rank - 1, rank - 2))
    left, top, right, bottom = split_coordinates(op, row_boxes)
    other_left, other_top, other_right, other_bottom = split_coordinates(op, column_boxes)
    extra = 0.0 if is_normalized else 1.0
    width = op.add(Sub, op.add(Min, right, other_right), op.add(Max, left, other_left))
    height = op.add(Sub, op.add(Min, bottom, other_bottom), op.add(Max, top, other_top))
    common = op.add(Mul, op.add(Add, width, extra), op.add(Add, height, extra))
    area = box_areas(op, boxes, is_normalized)
    area_sum = op.add(Add, *(op.add(Unsqueeze, area, (axis,)) for axis in (rank - 1, rank - 2)))
    iou = op.add(Div, common, op.add(Sub, area_sum, common))
    is_disjoint = op.add(
        Or,
        op.add(Or, op.add(Less, right, other_left), op.add(Less, other_right, left)),
        op.add(Or, op.add(Less, bottom, other_top), op.add(Less, other_bottom, top)),
    )
    zero = left.type.element_type.dtype.type(0)
    return op.add(Where, is_disjoint, zero, iou)
