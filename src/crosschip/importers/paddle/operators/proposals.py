"""Regions that a network proposes, and their division over the levels of a feature pyramid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.boxes import areas, picked, sides
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.comparison import Equal, GreaterEqual, LessEqual
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.indexing import Gather, ScatterElements
from crosschip.ops.standard.joining import Concat, Stack
from crosschip.ops.standard.layout import Expand, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Not, Where
from crosschip.ops.standard.reduction import ReduceAny, ReduceSum
from crosschip.ops.standard.searching import NonZero, TopK
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.suppression import NonMaxSuppression
from crosschip.ops.standard.unary import Exp, Floor, Log, Sqrt

_LOWEST = float(np.finfo(np.float32).min)
_MOST_GROWTH = math.log(1000 / 16)
"""The logarithm of how many times as large as its anchor a box can be."""


@imports("generate_proposals")
def generate_proposals(op: Context) -> None:
    """The older form: an image's information is height, width and scale; its boxes a sequence."""
    information = op.add(Reshape, op.input("ImInfo"), (-1, 3))
    height, width, scale = (
        op.add(Slice, information, (1,), (place,), (place + 1,)) for place in range(3)
    )
    counts = _propose(op, height, width, scale, 1.0)
    offsets = ragged.offsets_of(op, op.as_type(counts, ElementType.INT64))
    for output in ("RpnRois", "RpnRoiProbs"):
        op.set_levels([offsets], output)


@imports("generate_proposals_v2")
def generate_proposals_v2(op: Context) -> None:
    shapes = op.add(Reshape, op.input("ImShape"), (-1, 2))
    height, width = (op.add(Slice, shapes, (1,), (place,), (place + 1,)) for place in range(2))
    _propose(op, height, width, None, 1.0 if op.flag("pixel_offset", True) else 0.0)


def _propose(
    op: Context, height: Operand, width: Operand, scale: Operand | None, extra: float
) -> Operand:
    """Make the best boxes of each image that do not overlap, and tell how many they are."""
    if op.real("nms_thresh", 0.5) <= 0:
        raise UnsupportedError(
            "nms_thresh: must be above 0, so that boxes that overlap are left out"
        )
    scores = op.add(Reshape, op.add(Transpose, op.input("Scores"), (0, 2, 3, 1)), (0, -1))
    deltas = op.add(Transpose, op.input("BboxDeltas"), (0, 2, 3, 1))
    deltas = op.add(Reshape, deltas, (0, -1, 4))
    most: int | Operand = ragged.size(op, scores, 1)
    if (limit := op.integer("pre_nms_topN", 6000)) > 0:
        most = op.add(Min, most, np.int64(limit))
    best_scores, places = op.add_all(TopK, scores, most, axis=1, largest=True, sorted=True)
    anchors, variances = (
        op.add(Gather, op.add(Reshape, op.input(slot), (-1, 4)), places, 0)
        for slot in ("Anchors", "Variances")
    )
    moved = op.add(Mul, picked(op, deltas, places), variances)
    corners = _inside(op, _decoded(op, anchors, moved, extra), height, width, extra)
    is_kept = _is_large(op, corners, height, width, scale, extra)
    kind = best_scores.type.element_type.dtype.type
    best_scores = op.add(Where, is_kept, best_scores, kind(-np.inf))
    # An image of which no box is left has one without a size.
    is_none = op.add(Not, op.add(ReduceAny, is_kept, (1,), keepdim=True))
    of_none = op.add(Where, is_none, kind(0), kind(-np.inf))
    boxes = op.add(Stack, corners, 2)
    nowhere = op.add(Expand, np.zeros((1, 1, 4), kind), _sizes_with_one(op, boxes))
    limit = op.integer("post_nms_topN", 1000)
    rows, counts = op.add_all(
        NonMaxSuppression,
        op.add(Concat, parts=[boxes, nowhere], axis=1),
        op.add(Unsqueeze, op.add(Concat, parts=[best_scores, of_none], axis=1), (1,)),
        background_label=-1,
        score_threshold=_LOWEST,
        nms_top_k=-1,
        keep_top_k=limit if limit > 0 else -1,
        nms_threshold=op.real("nms_thresh", 0.5),
        normalized=not extra,
        nms_eta=op.real("eta", 1.0),
    )
    op.make(Slice, rows, (1,), (2,), (6,), output="RpnRois")
    op.make(Slice, rows, (1,), (1,), (2,), output="RpnRoiProbs")
    if op.count("RpnRoisNum"):
        op.define(counts, "RpnRoisNum")
    return counts


def _sizes_with_one(op: Context, boxes: Operand) -> Operand:
    """The sizes of one box an image."""
    count = op.add(Reshape, ragged.size(op, boxes), (1,))
    one = op.constant(np.array([1, 4], np.int64), "one")
    return op.add(Concat, parts=[count, one], axis=0)


def _decoded(
    op: Context, anchors: Operand, moved: Operand, extra: float
) -> tuple[Operand, Operand, Operand, Operand]:
    left, top, right, bottom = sides(op, anchors)
    moves = sides(op, moved)
    bounds: list[tuple[Operand, Operand]] = []
    for low, high, move, growth in (
        (left, right, moves[0], moves[2]),
        (top, bottom, moves[1], moves[3]),
    ):
        size = op.add(Add, op.add(Sub, high, low), extra)
        centre = op.add(Add, low, op.add(Mul, size, 0.5))
        centre = op.add(Add, op.add(Mul, move, size), centre)
        half = op.add(Mul, op.add(Mul, op.add(Exp, op.add(Min, growth, _MOST_GROWTH)), size), 0.5)
        bounds.append((op.add(Sub, centre, half), op.add(Sub, op.add(Add, centre, half), extra)))
    return bounds[0][0], bounds[1][0], bounds[0][1], bounds[1][1]


def _inside(
    op: Context, corners: Sequence[Operand], height: Operand, width: Operand, extra: float
) -> list[Operand]:
    """Boxes cut at the borders of their images."""
    ends = [op.add(Sub, size, extra) for size in (width, height)]
    return [
        op.add(Max, op.add(Min, corner, ends[place % 2]), 0.0)
        for place, corner in enumerate(corners)
    ]


def _is_large(
    op: Context,
    corners: Sequence[Operand],
    height: Operand,
    width: Operand,
    scale: Operand | None,
    extra: float,
) -> Operand:
    """Tell of each box whether it is large enough, and its centre in the image."""
    least = max(op.real("min_size", 0.1), 1.0)
    conditions = []
    for place, limit in enumerate((width, height)):
        low, high = corners[place], corners[place + 2]
        size = op.add(Add, op.add(Sub, high, low), extra)
        if extra:
            centre = op.add(Add, low, op.add(Mul, size, 0.5))
            conditions.append(op.add(LessEqual, centre, limit))
        if scale is not None:
            size = op.add(Add, op.add(Div, op.add(Sub, high, low), scale), 1.0)
        conditions.append(op.add(GreaterEqual, size, least))
    together = conditions[0]
    for other in conditions[1:]:
        together = op.add(And, together, other)
    return together


@imports("distribute_fpn_proposals")
def distribute_fpn_proposals(op: Context) -> None:
    """Regions by the level of the pyramid that is for their size, and where each has gone."""
    regions = op.input("FpnRois")
    first, last = op.integer("min_level"), op.integer("max_level")
    count = last - first + 1
    if op.count("MultiFpnRois") != count:
        raise ModelError(f"MultiFpnRois: {op.count('MultiFpnRois')} levels of {first} to {last}")
    side = op.add(Sqrt, areas(op, regions, not op.flag("pixel_offset", True)))
    share = op.add(Add, op.add(Div, side, float(op.integer("refer_scale"))), 1e-6)
    level = op.add(Div, op.add(Log, share), math.log(2))
    level = op.add(Floor, op.add(Add, level, float(op.integer("refer_level"))))
    level = op.as_type(op.add(Clip, level, float(first), float(last)), ElementType.INT64)
    offsets = _offsets_of_regions(op, "FpnRois", "RoisNum")
    rows_of_levels = []
    for place in range(count):
        is_here = op.add(Equal, level, np.int64(first + place))
        rows = op.add(Squeeze, op.add(NonZero, is_here), (0,))
        rows_of_levels.append(rows)
        variable = op.results("MultiFpnRois")[place]
        op.values.define(variable, op.add(Gather, regions, rows, 0))
        counts = _counts(op, offsets, rows)
        op.set_levels_of(variable, [ragged.offsets_of(op, counts)])
        if op.count("MultiLevelRoIsNum"):
            number = op.as_type(counts, ElementType.INT32)
            op.values.define(op.results("MultiLevelRoIsNum")[place], number)
    order = op.add(Concat, parts=rows_of_levels, axis=0)
    numbers = ragged.numbers_up_to(op, ragged.size(op, order))
    nothing = op.add(Fill, op.add(Reshape, ragged.size(op, order), (1,)), np.int64(0))
    restored = op.add(ScatterElements, nothing, order, numbers, 0)
    index = op.add(Unsqueeze, op.as_type(restored, ElementType.INT32), (1,))
    op.define(index, "RestoreIndex")


def _offsets_of_regions(op: Context, slot: str, counts: str) -> Operand:
    """Where the regions of each image begin, from a tensor of counts or the LoD."""
    numbers = op.optional_input(counts)
    if numbers is None:
        return op.levels(slot)[-1]
    return ragged.offsets_of(op, op.as_type(numbers, ElementType.INT64))


def _counts(op: Context, offsets: Operand, rows: Operand) -> Operand:
    """How many of the rows are of each image."""
    low, high = (
        op.add(Unsqueeze, bound, (1,))
        for bound in (ragged.starts(op, offsets), ragged.ends(op, offsets))
    )
    is_own = op.as_type(ragged.is_between(op, rows, low, high), ElementType.INT64)
    return op.add(ReduceSum, is_own, (1,), keepdim=False)


@imports("collect_fpn_proposals")
def collect_fpn_proposals(op: Context) -> None:
    """The best regions of all levels, image by image."""
    levels = range(len(op.variables("MultiLevelRois")))
    numbers = op.inputs("MultiLevelRoIsNum")
    region_images = []
    for place in levels:
        rows = ragged.numbers_up_to(op, ragged.size(op, op.inputs("MultiLevelRois")[place]))
        offsets = (
            ragged.offsets_of(op, op.as_type(numbers[place], ElementType.INT64))
            if numbers
            else op.levels_of("MultiLevelRois")[place][-1]
        )
        region_images.append(ragged.sequence_of_rows(op, offsets, rows))
    images = (
        ragged.size(op, numbers[0])
        if numbers
        else op.add(Sub, ragged.size(op, op.levels_of("MultiLevelRois")[0][-1]), np.int64(1))
    )
    regions = op.add(Concat, parts=op.inputs("MultiLevelRois"), axis=0)
    scores = [op.add(Reshape, part, (-1,)) for part in op.inputs("MultiLevelScores")]
    scored = op.add(Concat, parts=scores, axis=0)
    most = op.add(Min, ragged.size(op, scored), np.int64(op.integer("post_nms_topN")))
    _, best = op.add_all(TopK, scored, most, axis=0, largest=True, sorted=True)
    owner = op.add(Gather, op.add(Concat, parts=region_images, axis=0), best, 0)
    owner, order = op.add_all(TopK, owner, most, axis=0, largest=False, sorted=True)
    op.make(Gather, regions, op.add(Gather, best, order, 0), 0, output="FpnRois")
    image = op.add(Unsqueeze, ragged.numbers_up_to(op, images), (1,))
    is_own = op.as_type(op.add(Equal, owner, image), ElementType.INT64)
    counts = op.add(ReduceSum, is_own, (1,), keepdim=False)
    op.set_levels([ragged.offsets_of(op, counts)], "FpnRois")
    if op.count("RoisNum"):
        op.define(op.as_type(counts, ElementType.INT32), "RoisNum")
