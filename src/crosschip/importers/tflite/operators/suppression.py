"""Non-maximum suppression of boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Builder, ElementType, Loop, Model, Operand, TensorType
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Greater, GreaterEqual, LessEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, FillLike, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import Or, Where
from crosschip.ops.standard.reduction import CumSum, ReduceMax
from crosschip.ops.standard.searching import ArgMax
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.suppression import NonMaxSuppressionIndices
from crosschip.ops.standard.unary import Exp, Square

_LOWEST = np.float32(-np.inf)
"""The score of a box that is selected or suppressed."""


@imports("NON_MAX_SUPPRESSION_V4")
def non_max_suppression(node: Node) -> tuple[Operand, Operand]:
    """Import the numbers of the selected boxes, then zeros, and their count."""
    numbers, _ = _selected(node, None)
    return _first(node, numbers), _count(node, numbers)


@imports("NON_MAX_SUPPRESSION_V5")
def soft_non_max_suppression(node: Node) -> tuple[Operand, Operand, Operand]:
    """Import the numbers and the scores of the selected boxes, then zeros, and their count.

    With a positive sigma, a selected box reduces the scores of the boxes that it overlaps.
    """
    numbers, scores = _selected(node, node[5])
    return _first(node, numbers), _first(node, scores), _count(node, numbers)


def _selected(node: Node, sigma: Operand | None) -> tuple[Operand, Operand]:
    """Return the numbers and the scores of the selected boxes."""
    values = [node[index].value for index in (2, 3, 4)]
    is_soft = sigma is not None and (sigma.value is None or sigma.value.item() > 0)
    if is_soft or any(value is None for value in values):
        return _select_in_loop(node, sigma)
    count, overlap, score = (value.item() for value in values if value is not None)
    if not count:
        empty = np.zeros(0, np.float32)
        return node.constant(empty.astype(np.int32)), node.constant(empty)
    # A box is suppressed from the threshold on, but by the operator only above it.
    below = float(np.nextafter(np.float32(overlap), np.float32(-np.inf)))
    detections = node.add(
        NonMaxSuppressionIndices,
        node.add(Unsqueeze, node[0], axes=(0,)),
        node.add(Unsqueeze, node[1], axes=(0, 1)),
        max_output_boxes_per_class=count if overlap > 0 else min(count, 1),
        iou_threshold=max(below, 0.0),
        score_threshold=score,
    )
    column = node.add(Slice, detections, axes=(1,), starts=(2,), ends=(3,))
    numbers = node.add(Cast, node.add(Reshape, column, (-1,)), ElementType.INT32)
    return numbers, node.add(Gather, node[1], numbers, axis=0)


def _first(node: Node, values: Operand) -> Operand:
    """Return the values, followed by zeros up to the largest number of boxes."""
    limit = node.add(Reshape, node[2], (1,))
    zeros = node.add(Fill, limit, np.zeros((), values.type.element_type.dtype))
    padded = node.add(Concat, parts=[values, zeros], axis=0)
    return node.add(Slice, padded, axes=(0,), starts=(0,), ends=limit)


def _count(node: Node, numbers: Operand) -> Operand:
    return node.add(Reshape, node.add(ShapeOf, numbers, ElementType.INT32), ())


def _select_in_loop(node: Node, sigma: Operand | None) -> tuple[Operand, Operand]:
    """Return the numbers and the scores of the boxes that a loop selects, one per iteration."""
    boxes, scores, limit, overlap, least = (node[index] for index in range(5))
    # The shape of the numbers is that of the scores, also where sizes are symbols.
    ones = node.add(FillLike, scores, np.array(1, np.int32))
    numbers = node.add(CumSum, ones, axis=0, exclusive=True)
    boxes = node.add(Gather, boxes, numbers, axis=0)
    columns = [node.add(Gather, boxes, np.array(index), axis=1) for index in range(4)]
    low = [node.add(Min, columns[axis], columns[axis + 2]) for axis in range(2)]
    high = [node.add(Max, columns[axis], columns[axis + 2]) for axis in range(2)]
    if sigma is None:
        sigma = node.constant(np.zeros((), np.float32))
    decay = node.add(
        Where,
        node.add(Greater, sigma, np.float32(0)),
        node.add(Div, np.float32(-0.5), sigma),
        np.float32(0),
    )
    start = node.add(Where, node.add(Greater, scores, least), scores, _LOWEST)
    is_any = node.add(Greater, node.add(ReduceMax, start, (0,), False), least)
    trips = node.add(Reshape, node.add(Cast, limit, ElementType.INT64), ())
    captures = [*low, *high, overlap, least, decay, numbers]
    name = next(node.names)
    body = _selection(name, [start, *captures])
    operands = (trips, is_any, start, *captures)
    _, selected, their_scores = node.control(
        lambda each: Loop(each, operands, bodies=[body], states=1)
    )
    return selected, their_scores


def _selection(name: str, operands: Sequence[Operand]) -> Model:
    """Return the body that selects the best box and reduces the scores of the others."""
    b = Builder(name, f"{name}/")
    b.input("iteration", ITERATION)
    b.input("condition", CONDITION)
    names = ("scores", "y_low", "x_low", "y_high", "x_high", "overlap", "least", "decay", "numbers")
    scores, *corners, overlap, least, decay, numbers = (
        b.input(each, TensorType(operand.type.element_type, operand.type.shape))
        for each, operand in zip(names, operands, strict=True)
    )
    low, high = corners[:2], corners[2:]
    best = b.add(Cast, b.add(ArgMax, scores, axis=0, keepdim=False), ElementType.INT32)
    score = b.add(ReduceMax, scores, (0,), False)

    def area(first: Sequence[Operand], second: Sequence[Operand]) -> Operand:
        sides = [b.add(Sub, end, start) for start, end in zip(first, second, strict=True)]
        return b.add(Mul, *(b.add(Max, side, np.float32(0)) for side in sides))

    of_best = [b.add(Gather, corner, best, axis=0) for corner in corners]
    inner_low = [b.add(Max, *pair) for pair in zip(low, of_best[:2], strict=True)]
    inner_high = [b.add(Min, *pair) for pair in zip(high, of_best[2:], strict=True)]
    inner = area(inner_low, inner_high)
    areas, best_area = area(low, high), area(of_best[:2], of_best[2:])
    outer = b.add(Sub, b.add(Add, areas, best_area), inner)
    is_flat = b.add(LessEqual, b.add(Min, areas, best_area), np.float32(0))
    quotient = b.add(Div, inner, b.add(Where, is_flat, np.float32(1), outer))
    overlaps = b.add(Where, is_flat, np.float32(0), quotient)
    reduced = b.add(Mul, scores, b.add(Exp, b.add(Mul, b.add(Square, overlaps), decay)))
    is_out = b.add(Or, b.add(GreaterEqual, overlaps, overlap), b.add(Equal, numbers, best))
    is_out = b.add(Or, is_out, b.add(LessEqual, reduced, least))
    rest = b.add(Where, is_out, _LOWEST, reduced)
    b.output("is_any", b.add(Greater, b.add(ReduceMax, rest, (0,), False), least))
    for output, value in (("rest", rest), ("best", best), ("score", score)):
        b.output(output, value)
    return b.build()
