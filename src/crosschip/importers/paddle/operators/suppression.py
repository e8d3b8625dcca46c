"""Non-maximum suppression."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.boxes import gather_rows, pairwise_iou
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, Operand, UnsupportedError
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
    rows, counts, indices = _non_max_suppression(op)
    op.define(rows)
    if op.count("NmsRoisNum"):
        op.define(counts, "NmsRoisNum")
    if op.count("Index"):
        op.define(indices, "Index")


@imports("multiclass_nms2")
def multiclass_nms2(op: Context) -> None:
    """Import `multiclass_nms2`: the selected boxes; each image's boxes are a sequence."""
    rows, counts, indices = _non_max_suppression(op)
    offsets = ragged.offsets_from_lengths(op, op.as_type(counts, ElementType.INT64))
    for result, output in ((rows, "Out"), (indices, "Index")):
        op.define(result, output)
        op.set_levels([offsets], output)


@imports("multiclass_nms")
def multiclass_nms(op: Context) -> None:
    """Select boxes as in `multiclass_nms2`; if there are none, return a single row [-1]."""
    rows, counts, _ = _non_max_suppression(op)
    offsets = ragged.offsets_from_lengths(op, op.as_type(counts, ElementType.INT64))
    sizes = op.add(ShapeOf, rows, ElementType.INT64)
    is_empty = op.add(Equal, op.add(Slice, sizes, (0,), (0,), (1,)), np.int64(0))
    filler_count = op.as_type(is_empty, ElementType.INT64)
    filler = op.constant(np.array([-1], rows.type.element_type.dtype), "nothing")
    flat = op.add(
        Concat, parts=[op.add(Reshape, rows, (-1,)), op.add(Expand, filler, filler_count)], axis=0
    )
    op.make(Reshape, flat, op.add(Where, is_empty, np.ones(2, np.int64), sizes))
    empty_offsets = op.constant(np.array([0, 1], np.int64), "nothing.offsets")
    all_offsets = op.add(Concat, parts=[empty_offsets, offsets], axis=0)
    first = op.add(Where, is_empty, np.array([0], np.int64), np.array([2], np.int64))
    last = op.add(Where, is_empty, np.array([2], np.int64), np.array([2**31 - 1], np.int64))
    op.set_levels([op.add(Slice, all_offsets, (0,), first, last)])


def _non_max_suppression(op: Context) -> tuple[Operand, Operand, Operand]:
    """Build the suppression; return the selected rows, their counts per image and indices."""
    boxes, scores, counts = op.input("BBoxes"), op.input("Scores"), op.optional_input("RoisNum")
    if op.rank(scores) == 3:
        counts = None  # Paddle reads RoisNum only for scores of rank 2.
    elif counts is None:
        lengths = ragged.lengths(op, op.levels("BBoxes")[-1])
        counts = op.as_type(lengths, ElementType.INT32)
    images, batch = ((operand.type.shape or (None,))[0] for operand in (scores, boxes))
    if counts is None and images != batch and isinstance(images, int) and isinstance(batch, int):
        # Images without scores are ignored.
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
    rows, counts, indices = outputs
    return rows, counts, indices


@imports("matrix_nms")
def matrix_nms(op: Context) -> None:
    """Select the boxes with the highest scores after a decay by the overlap with better boxes.

    Source: Wang et al., "SOLOv2: Dynamic and Fast Instance Segmentation",
    https://arxiv.org/abs/2003.10152.
    """
    boxes, scores = op.input("BBoxes"), op.input("Scores")
    if (boxes.type.shape or (None,))[-1] != 4:
        raise UnsupportedError(f"BBoxes: {boxes.type} must be rectangles, of 4 numbers")
    threshold, lowest = op.real("score_threshold"), scores.type.element_type.dtype.type(-np.inf)
    is_candidate = op.add(And, op.add(Greater, scores, threshold), _is_foreground(op, scores))
    scores_or_lowest = op.add(Where, is_candidate, scores, lowest)
    candidates, selected = _top_scores(op, scores_or_lowest, is_candidate)
    decayed = op.add(Mul, candidates, _decay(op, gather_rows(op, boxes, selected)))
    is_kept = op.add(
        And,
        op.add(Greater, candidates, threshold),
        op.add(Greater, decayed, op.real("post_threshold", 0.0)),
    )
    flat = op.add(Reshape, op.add(Where, is_kept, decayed, lowest), (0, -1))
    count = ragged.size(op, flat, 1)
    if op.integer("keep_top_k") > -1:
        count = op.add(Min, count, np.int64(op.integer("keep_top_k")))
    best_scores, order = op.add_all(TopK, flat, count, axis=1, largest=True, sorted=True)
    label = op.add(Gather, _labels(op, candidates), order, 0)
    selected = gather_rows(op, op.add(Unsqueeze, op.add(Reshape, selected, (0, -1)), (2,)), order)
    chosen_boxes = gather_rows(op, boxes, op.add(Squeeze, selected, (2,)))
    columns = [
        op.add(Unsqueeze, op.as_type(part, scores.type.element_type), (2,))
        for part in (label, best_scores)
    ]
    table = op.add(Reshape, op.add(Concat, parts=[*columns, chosen_boxes], axis=2), (-1, 6))
    is_valid = op.add(Greater, best_scores, lowest)
    rows = op.add(Squeeze, op.add(NonZero, op.add(Reshape, is_valid, (-1,))), (0,))
    op.make(Gather, table, rows, 0)
    if op.count("Index"):
        image = op.add(Unsqueeze, ragged.arange(op, ragged.size(op, boxes)), (1, 2))
        index = op.add(Add, op.add(Mul, image, ragged.size(op, boxes, 1)), selected)
        index = op.as_type(op.add(Reshape, index, (-1, 1)), ElementType.INT32)
        op.make(Gather, index, rows, 0, output="Index")
    if op.count("RoisNum"):
        numbers = op.as_type(is_valid, ElementType.INT32)
        op.make(ReduceSum, numbers, (1,), keepdim=False, output="RoisNum")


def _labels(op: Context, candidates: Operand) -> Operand:
    """Return the class of each candidate, flattened over classes and candidates."""
    sizes = [op.add(Reshape, ragged.size(op, candidates, axis), (1,)) for axis in (1, 2)]
    numbers = op.add(Unsqueeze, ragged.arange(op, ragged.size(op, candidates, 1)), (1,))
    return op.add(Reshape, op.add(Expand, numbers, op.add(Concat, parts=sizes, axis=0)), (-1,))


def _is_foreground(op: Context, scores: Operand) -> Operand:
    labels = op.add(Unsqueeze, ragged.arange(op, ragged.size(op, scores, 1)), (1,))
    background = op.add(Equal, labels, np.int64(op.integer("background_label", 0)))
    return op.add(Equal, background, np.bool_(False))


def _top_scores(op: Context, scores: Operand, is_candidate: Operand) -> tuple[Operand, Operand]:
    """Return the best scores and their indices, as many as the class with most candidates has."""
    numbers = op.as_type(is_candidate, ElementType.INT64)
    count = op.add(ReduceMax, op.add(ReduceSum, numbers, (2,), keepdim=False), (), keepdim=False)
    if op.integer("nms_top_k") > -1:
        count = op.add(Min, count, np.int64(op.integer("nms_top_k")))
    count = op.add(Max, count, np.int64(1))
    top, indices = op.add_all(TopK, scores, count, axis=2, largest=True, sorted=True)
    return top, indices


def _decay(op: Context, boxes: Operand) -> Operand:
    """Return the factor of each score for its overlaps with boxes of higher scores."""
    overlap = pairwise_iou(op, boxes, op.flag("normalized", True))
    numbers = ragged.arange(op, ragged.size(op, boxes, 2))
    is_before = op.add(Less, numbers, op.add(Unsqueeze, numbers, (1,)))
    dtype = overlap.type.element_type.dtype.type
    overlap = op.add(Where, is_before, overlap, dtype(0))
    # The greatest overlap of the box of each column.
    max_overlap = op.add(ReduceMax, overlap, (3,), keepdim=False)
    max_overlap = op.add(Unsqueeze, max_overlap, (2,))
    if op.flag("use_gaussian", False):
        difference = op.add(Sub, op.add(Square, max_overlap), op.add(Square, overlap))
        decay = op.add(Exp, op.add(Mul, difference, op.real("gaussian_sigma", 2.0)))
    else:
        decay = op.add(Div, op.add(Sub, dtype(1), overlap), op.add(Sub, dtype(1), max_overlap))
        decay = op.add(Where, op.add(IsNaN, decay), dtype(1), decay)
    decay = op.add(Where, is_before, decay, dtype(1))
    return op.add(Min, op.add(ReduceMin, decay, (3,), keepdim=False), dtype(1))


@imports("nms")
def nms(op: Context) -> None:
    """Return indices of boxes, sorted by score, that do not overlap a box selected before."""
    boxes = op.input("Boxes")
    numbers = ragged.arange(op, ragged.size(op, boxes))
    scores = op.add(Neg, op.as_type(numbers, boxes.type.element_type))
    _, _, selected = op.add_all(
        NonMaxSuppression,
        op.add(Unsqueeze, boxes, (0,)),
        op.add(Unsqueeze, scores, (0, 1)),
        background_label=-1,
        score_threshold=float(np.finfo(np.float32).min),
        nms_threshold=op.real("iou_threshold", 1.0),
        return_index=True,
    )
    indices = op.as_type(op.add(Reshape, selected, (-1,)), ElementType.INT64)
    op.define(indices, "KeepBoxesIdxs")
