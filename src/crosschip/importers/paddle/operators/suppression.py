"""Selection of boxes: non-maximum suppression."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.boxes import overlaps, picked
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import Array, ElementType, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Greater, Less
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin, ReduceSum
from crosschip.ops.standard.searching import NonZero, TopK
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.suppression import NonMaxSuppression, PolygonNonMaxSuppression
from crosschip.ops.standard.unary import Exp, IsNaN, Neg, Square


@imports("multiclass_nms3")
def multiclass_nms3(op: Context) -> None:
    rows, counts, places = _suppressed(op)
    op.define(rows)
    if op.count("NmsRoisNum"):
        op.define(counts, "NmsRoisNum")
    if op.count("Index"):
        op.define(places, "Index")


@imports("multiclass_nms2")
def multiclass_nms2(op: Context) -> None:
    """The rows of all images, which are a sequence an image."""
    rows, counts, places = _suppressed(op)
    offsets = ragged.offsets_of(op, op.as_type(counts, ElementType.INT64))
    for result, output in ((rows, "Out"), (places, "Index")):
        op.define(result, output)
        op.set_levels([offsets], output)


@imports("multiclass_nms")
def multiclass_nms(op: Context) -> None:
    """The same; where nothing is left, there is one row of one number, -1, in one sequence."""
    rows, counts, _ = _suppressed(op)
    offsets = ragged.offsets_of(op, op.as_type(counts, ElementType.INT64))
    sizes = op.add(ShapeOf, rows, ElementType.INT64)
    is_none = op.add(Equal, op.add(Slice, sizes, (0,), (0,), (1,)), np.int64(0))
    one = op.as_type(is_none, ElementType.INT64)
    nothing = op.constant(np.array([-1], rows.type.element_type.dtype), "nothing")
    flat = op.add(
        Concat, parts=[op.add(Reshape, rows, (-1,)), op.add(Expand, nothing, one)], axis=0
    )
    op.make(Reshape, flat, op.add(Where, is_none, np.ones(2, np.int64), sizes))
    no_offsets = op.constant(np.array([0, 1], np.int64), "nothing.offsets")
    joined = op.add(Concat, parts=[no_offsets, offsets], axis=0)
    first = op.add(Where, is_none, np.array([0], np.int64), np.array([2], np.int64))
    last = op.add(Where, is_none, np.array([2], np.int64), np.array([2**31 - 1], np.int64))
    op.set_levels([op.add(Slice, joined, (0,), first, last)])


def _suppressed(op: Context) -> tuple[Operand, Operand, Operand]:
    """The rows that are left, the number of each image's, and where they were."""
    boxes, scores, counts = op.input("BBoxes"), op.input("Scores"), op.optional_input("RoisNum")
    if op.rank(scores) == 3:
        counts = None  # Paddle reads them only beside scores of two axes.
    elif counts is None:
        lengths = ragged.lengths(op, op.levels("BBoxes")[-1])
        counts = op.as_type(lengths, ElementType.INT32)
    images, more = ((operand.type.shape or (None,))[0] for operand in (scores, boxes))
    if counts is None and images != more and isinstance(images, int) and isinstance(more, int):
        # Boxes without scores are of no account.
        boxes = op.add(Slice, boxes, (0,), (0,), (images,))
    settings = {
        "background_label": op.integer("background_label", 0),
        "score_threshold": op.real("score_threshold"),
        "nms_top_k": op.integer("nms_top_k"),
        "keep_top_k": op.integer("keep_top_k"),
        "nms_threshold": op.real("nms_threshold", 0.3),
        "nms_eta": op.real("nms_eta", 1.0),
        "return_index": True,
    }
    if (boxes.type.shape or (None,))[-1] in (None, 4):
        is_normalized = op.flag("normalized", True)
        outputs = op.add_all(
            NonMaxSuppression, boxes, scores, counts, normalized=is_normalized, **settings
        )
    elif counts is None:
        outputs = op.add_all(PolygonNonMaxSuppression, boxes, scores, **settings)
    else:
        raise UnsupportedError(
            f"BBoxes: {boxes.type} are polygons of each class; with scores of two axes only "
            f"rectangles are"
        )
    rows, counts, places = outputs
    return rows, counts, places


@imports("matrix_nms")
def matrix_nms(op: Context) -> None:
    """The boxes of the highest scores, lessened by how much better boxes overlap them.

    Source: Wang et al., "SOLOv2: Dynamic and Fast Instance Segmentation",
    https://arxiv.org/abs/2003.10152.
    """
    boxes, scores = op.input("BBoxes"), op.input("Scores")
    if (boxes.type.shape or (None,))[-1] != 4:
        raise UnsupportedError(f"BBoxes: {boxes.type} must be rectangles, of 4 numbers")
    threshold, least = op.real("score_threshold"), _least(scores)
    is_candidate = op.add(And, op.add(Greater, scores, threshold), _is_foreground(op, scores))
    best, places = _best(op, op.add(Where, is_candidate, scores, least), is_candidate)
    decayed = op.add(Mul, best, _decay(op, picked(op, boxes, places)))
    is_kept = op.add(
        And,
        op.add(Greater, best, threshold),
        op.add(Greater, decayed, op.real("post_threshold", 0.0)),
    )
    flat = op.add(Reshape, op.add(Where, is_kept, decayed, least), (0, -1))
    most = ragged.size(op, flat, 1)
    if op.integer("keep_top_k") > -1:
        most = op.add(Min, most, np.int64(op.integer("keep_top_k")))
    best_scores, order = op.add_all(TopK, flat, most, axis=1, largest=True, sorted=True)
    label = op.add(Gather, _labels(op, best), order, 0)
    places = picked(op, op.add(Unsqueeze, op.add(Reshape, places, (0, -1)), (2,)), order)
    chosen = picked(op, boxes, op.add(Squeeze, places, (2,)))
    columns = [
        op.add(Unsqueeze, op.as_type(part, scores.type.element_type), (2,))
        for part in (label, best_scores)
    ]
    table = op.add(Reshape, op.add(Concat, parts=[*columns, chosen], axis=2), (-1, 6))
    is_there = op.add(Greater, best_scores, least)
    rows = op.add(Squeeze, op.add(NonZero, op.add(Reshape, is_there, (-1,))), (0,))
    op.make(Gather, table, rows, 0)
    if op.count("Index"):
        image = op.add(Unsqueeze, ragged.numbers_up_to(op, ragged.size(op, boxes)), (1, 2))
        index = op.add(Add, op.add(Mul, image, ragged.size(op, boxes, 1)), places)
        index = op.as_type(op.add(Reshape, index, (-1, 1)), ElementType.INT32)
        op.make(Gather, index, rows, 0, output="Index")
    if op.count("RoisNum"):
        numbers = op.as_type(is_there, ElementType.INT32)
        op.make(ReduceSum, numbers, (1,), keepdim=False, output="RoisNum")


def _labels(op: Context, best: Operand) -> Operand:
    """The class of each of the best scores of all classes, in a list."""
    sizes = [op.add(Reshape, ragged.size(op, best, axis), (1,)) for axis in (1, 2)]
    numbers = op.add(Unsqueeze, ragged.numbers_up_to(op, ragged.size(op, best, 1)), (1,))
    return op.add(Reshape, op.add(Expand, numbers, op.add(Concat, parts=sizes, axis=0)), (-1,))


def _least(scores: Operand) -> Array:
    """What stands for no score."""
    return np.array(-np.inf, scores.type.element_type.dtype)


def _is_foreground(op: Context, scores: Operand) -> Operand:
    labels = op.add(Unsqueeze, ragged.numbers_up_to(op, ragged.size(op, scores, 1)), (1,))
    background = op.add(Equal, labels, np.int64(op.integer("background_label", 0)))
    return op.add(Equal, background, np.bool_(False))


def _best(op: Context, scores: Operand, is_candidate: Operand) -> tuple[Operand, Operand]:
    """The best scores of each class and where they are: as many as the class with most has."""
    numbers = op.as_type(is_candidate, ElementType.INT64)
    most = op.add(ReduceMax, op.add(ReduceSum, numbers, (2,), keepdim=False), (), keepdim=False)
    if op.integer("nms_top_k") > -1:
        most = op.add(Min, most, np.int64(op.integer("nms_top_k")))
    most = op.add(Max, most, np.int64(1))
    best, places = op.add_all(TopK, scores, most, axis=2, largest=True, sorted=True)
    return best, places


def _decay(op: Context, boxes: Operand) -> Operand:
    """What remains of each score, by the overlaps with the boxes of higher ones before it."""
    overlap = overlaps(op, boxes, op.flag("normalized", True))
    numbers = ragged.numbers_up_to(op, ragged.size(op, boxes, 2))
    is_before = op.add(Less, numbers, op.add(Unsqueeze, numbers, (1,)))
    kind = overlap.type.element_type.dtype.type
    overlap = op.add(Where, is_before, overlap, kind(0))
    # Of the box that there is a column for.
    most = op.add(ReduceMax, overlap, (3,), keepdim=False)
    most = op.add(Unsqueeze, most, (2,))
    if op.flag("use_gaussian", False):
        difference = op.add(Sub, op.add(Square, most), op.add(Square, overlap))
        share = op.add(Exp, op.add(Mul, difference, op.real("gaussian_sigma", 2.0)))
    else:
        share = op.add(Div, op.add(Sub, kind(1), overlap), op.add(Sub, kind(1), most))
        share = op.add(Where, op.add(IsNaN, share), kind(1), share)
    share = op.add(Where, is_before, share, kind(1))
    return op.add(Min, op.add(ReduceMin, share, (3,), keepdim=False), kind(1))


@imports("nms")
def nms(op: Context) -> None:
    """The boxes, of falling scores, that do not overlap one before them that is kept."""
    boxes = op.input("Boxes")
    numbers = ragged.numbers_up_to(op, ragged.size(op, boxes))
    scores = op.add(Neg, op.as_type(numbers, boxes.type.element_type))
    _, _, places = op.add_all(
        NonMaxSuppression,
        op.add(Unsqueeze, boxes, (0,)),
        op.add(Unsqueeze, scores, (0, 1)),
        background_label=-1,
        score_threshold=float(np.finfo(np.float32).min),
        nms_threshold=op.real("iou_threshold", 1.0),
        return_index=True,
    )
    indices = op.as_type(op.add(Reshape, places, (-1,)), ElementType.INT64)
    op.define(indices, "KeepBoxesIdxs")
