"""Region proposals, and their distribution over the levels of a feature pyramid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.boxes import box_areas, gather_rows, split_coordinates
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
"""The greatest logarithm of the ratio of a box's size to its anchor's."""


@imports("generate_proposals")
def generate_proposals(op: Context) -> None:
    """Import the older form; `ImInfo` is height, width, scale; an image's boxes are a sequence."""
    image_info = op.add(Reshape, op.input("ImInfo"), (-1, 3))
    height, width, scale = (
        op.add(Slice, image_info, (1,), (index,), (index + 1,)) for index in range(3)
    )
    counts = _propose(op, height, width, scale, 1.0)
    offsets = ragged.offsets_from_lengths(op, op.as_type(counts, ElementType.INT64))
    for output in ("RpnRois", "RpnRoiProbs"):
        op.set_levels([offsets], output)


@imports("generate_proposals_v2")
def generate_proposals_v2(op: Context) -> None:
    shapes = op.add(Reshape, op.input("ImShape"), (-1, 2))
    height, width = (op.add(Slice, shapes, (1,), (index,), (index + 1,)) for index in range(2))
    _propose(op, height, width, None, 1.0 if op.flag("pixel_offset", True) else 0.0)


def _propose(
    op: Context, height: Operand, width: Operand, scale: Operand | None, extra: float
) -> Operand:
    """Set the outputs to the best boxes of each image after suppression; return the counts."""
    if op.real("nms_thresh", 0.5) <= 0:
        raise UnsupportedError(
            "nms_thresh: must be above 0, so that boxes that overlap are left out"
        )
    scores = op.add(Reshape, op.add(Transpose, op.input("Scores"), (0, 2, 3, 1)), (0, -1))
    deltas = op.add(Transpose, op.input("BboxDeltas"), (0, 2, 3, 1))
    deltas = op.add(Reshape, deltas, (0, -1, 4))
    count: int | Operand = ragged.size(op, scores, 1)
    if (limit := op.integer("pre_nms_topN", 6000)) > 0:
        count = op.add(Min, count, np.int64(limit))
    best_scores, anchor_indices = op.add_all(TopK, scores, count, axis=1, largest=True, sorted=True)
    anchors, variances = (
        op.add(Gather, op.add(Reshape, op.input(slot), (-1, 4)), anchor_indices, 0)
        for slot in ("Anchors", "Variances")
    )
    offsets = op.add(Mul, gather_rows(op, deltas, anchor_indices), variances)
    corners = _clip_to_image(op, _decode(op, anchors, offsets, extra), height, width, extra)
    is_valid = _is_valid_box(op, corners, height, width, scale, extra)
    dtype = best_scores.type.element_type.dtype.type
    best_scores = op.add(Where, is_valid, best_scores, dtype(-np.inf))
    # An image without valid boxes gets one box of size 0.
    has_no_box = op.add(Not, op.add(ReduceAny, is_valid, (1,), keepdim=True))
    fallback_score = op.add(Where, has_no_box, dtype(0), dtype(-np.inf))
    boxes = op.add(Stack, corners, 2)
    image_count = op.add(Reshape, ragged.size(op, boxes), (1,))
    one_box = op.constant(np.array([1, 4], np.int64), "one")
    box_shape = op.add(Concat, parts=[image_count, one_box], axis=0)
    fallback_box = op.add(Expand, np.zeros((1, 1, 4), dtype), box_shape)
    limit = op.integer("post_nms_topN", 1000)
    rows, counts = op.add_all(
        NonMaxSuppression,
        op.add(Concat, parts=[boxes, fallback_box], axis=1),
        op.add(Unsqueeze, op.add(Concat, parts=[best_scores, fallback_score], axis=1), (1,)),
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


def _decode(
    op: Context, anchors: Operand, deltas: Operand, extra: float
) -> tuple[Operand, Operand, Operand, Operand]:
    left, top, right, bottom = split_coordinates(op, anchors)
    components = split_coordinates(op, deltas)
    bounds: list[tuple[Operand, Operand]] = []
    for low, high, shift, growth in (
        (left, right, components[0], components[2]),
        (top, bottom, components[1], components[3]),
    ):
        size = op.add(Add, op.add(Sub, high, low), extra)
        centre = op.add(Add, low, op.add(Mul, size, 0.5))
        centre = op.add(Add, op.add(Mul, shift, size), centre)
        half = op.add(Mul, op.add(Mul, op.add(Exp, op.add(Min, growth, _MOST_GROWTH)), size), 0.5)
        bounds.append((op.add(Sub, centre, half), op.add(Sub, op.add(Add, centre, half), extra)))
    return bounds[0][0], bounds[1][0], bounds[0][1], bounds[1][1]


def _clip_to_image(
    op: Context, corners: Sequence[Operand], height: Operand, width: Operand, extra: float
) -> list[Operand]:
    """Clip boxes to their images."""
    ends = [op.add(Sub, size, extra) for size in (width, height)]
    return [
        op.add(Max, op.add(Min, corner, ends[index % 2]), 0.0)
        for index, corner in enumerate(corners)
    ]


def _is_valid_box(
    op: Context,
    corners: Sequence[Operand],
    height: Operand,
    width: Operand,
    scale: Operand | None,
    extra: float,
) -> Operand:
    """Return whether each box has the minimum size, and its centre is in the image."""
    min_size = max(op.real("min_size", 0.1), 1.0)
    conditions = []
    for axis, limit in enumerate((width, height)):
        low, high = corners[axis], corners[axis + 2]
        size = op.add(Add, op.add(Sub, high, low), extra)
        if extra:
            centre = op.add(Add, low, op.add(Mul, size, 0.5))
            conditions.append(op.add(LessEqual, centre, limit))
        if scale is not None:
            size = op.add(Add, op.add(Div, op.add(Sub, high, low), scale), 1.0)
        conditions.append(op.add(GreaterEqual, size, min_size))
    all_conditions = conditions[0]
    for other in conditions[1:]:
        all_conditions = op.add(And, all_conditions, other)
    return all_conditions


@imports("distribute_fpn_proposals")
def distribute_fpn_proposals(op: Context) -> None:
    """Regions grouped by the pyramid level for their size, and the index to restore the order."""
    regions = op.input("FpnRois")
    first, last = op.integer("min_level"), op.integer("max_level")
    count = last - first + 1
    if op.count("MultiFpnRois") != count:
        raise ModelError(f"MultiFpnRois: {op.count('MultiFpnRois')} levels of {first} to {last}")
    side = op.add(Sqrt, box_areas(op, regions, not op.flag("pixel_offset", True)))
    ratio = op.add(Add, op.add(Div, side, float(op.integer("refer_scale"))), 1e-6)
    level = op.add(Div, op.add(Log, ratio), math.log(2))
    level = op.add(Floor, op.add(Add, level, float(op.integer("refer_level"))))
    level = op.as_type(op.add(Clip, level, float(first), float(last)), ElementType.INT64)
    offsets = _offsets_of_regions(op, "FpnRois", "RoisNum")
    rows_of_levels = []
    for level_index in range(count):
        is_in_level = op.add(Equal, level, np.int64(first + level_index))
        rows = op.add(Squeeze, op.add(NonZero, is_in_level), (0,))
        rows_of_levels.append(rows)
        variable = op.output_names("MultiFpnRois")[level_index]
        op.values.define(variable, op.add(Gather, regions, rows, 0))
        counts = _counts(op, offsets, rows)
        op.set_levels_of(variable, [ragged.offsets_from_lengths(op, counts)])
        if op.count("MultiLevelRoIsNum"):
            number = op.as_type(counts, ElementType.INT32)
            op.values.define(op.output_names("MultiLevelRoIsNum")[level_index], number)
    order = op.add(Concat, parts=rows_of_levels, axis=0)
    numbers = ragged.arange(op, ragged.size(op, order))
    zeros = op.add(Fill, op.add(Reshape, ragged.size(op, order), (1,)), np.int64(0))
    restored = op.add(ScatterElements, zeros, order, numbers, 0)
    index = op.add(Unsqueeze, op.as_type(restored, ElementType.INT32), (1,))
    op.define(index, "RestoreIndex")


def _offsets_of_regions(op: Context, slot: str, counts: str) -> Operand:
    """Return the offsets of the regions of each image, from a tensor of counts or the LoD."""
    numbers = op.optional_input(counts)
    if numbers is None:
        return op.levels(slot)[-1]
    return ragged.offsets_from_lengths(op, op.as_type(numbers, ElementType.INT64))


def _counts(op: Context, offsets: Operand, rows: Operand) -> Operand:
    """Return the number of rows in each image."""
    low, high = (
        op.add(Unsqueeze, bound, (1,))
        for bound in (ragged.starts(op, offsets), ragged.ends(op, offsets))
    )
    is_in_image = op.as_type(ragged.in_range(op, rows, low, high), ElementType.INT64)
    return op.add(ReduceSum, is_in_image, (1,), keepdim=False)


@imports("collect_fpn_proposals")
def collect_fpn_proposals(op: Context) -> None:
    """Import `collect_fpn_proposals`: the best regions of all levels, ordered by image."""
    levels = range(len(op.variables("MultiLevelRois")))
    numbers = op.inputs("MultiLevelRoIsNum")
    region_images = []
    for index in levels:
        rows = ragged.arange(op, ragged.size(op, op.inputs("MultiLevelRois")[index]))
        offsets = (
            ragged.offsets_from_lengths(op, op.as_type(numbers[index], ElementType.INT64))
            if numbers
            else op.levels_of("MultiLevelRois")[index][-1]
        )
        region_images.append(ragged.row_sequences(op, offsets, rows))
    images = (
        ragged.size(op, numbers[0])
        if numbers
        else op.add(Sub, ragged.size(op, op.levels_of("MultiLevelRois")[0][-1]), np.int64(1))
    )
    regions = op.add(Concat, parts=op.inputs("MultiLevelRois"), axis=0)
    scores = [op.add(Reshape, part, (-1,)) for part in op.inputs("MultiLevelScores")]
    all_scores = op.add(Concat, parts=scores, axis=0)
    count = op.add(Min, ragged.size(op, all_scores), np.int64(op.integer("post_nms_topN")))
    _, best = op.add_all(TopK, all_scores, count, axis=0, largest=True, sorted=True)
    best_images = op.add(Gather, op.add(Concat, parts=region_images, axis=0), best, 0)
    best_images, order = op.add_all(TopK, best_images, count, axis=0, largest=False, sorted=True)
    op.make(Gather, regions, op.add(Gather, best, order, 0), 0, output="FpnRois")
    image = op.add(Unsqueeze, ragged.arange(op, images), (1,))
    is_in_image = op.as_type(op.add(Equal, best_images, image), ElementType.INT64)
    counts = op.add(ReduceSum, is_in_image, (1,), keepdim=False)
    op.set_levels([ragged.offsets_from_lengths(op, counts)], "FpnRois")
    if op.count("RoisNum"):
        op.define(op.as_type(counts, ElementType.INT32), "RoisNum")
