"""Non-maximum suppression of object detectors' boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Dim, ElementType, Shape, unknown
from crosschip.ir.types import FLOATS, INDICES
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import require_rank, unify
from crosschip.ops.definition.slots import Parameter, flag, integer, optional_tensor, real, tensor
from crosschip.ops.numerics.overlap import (
    OverlapsWith,
    PolygonOverlaps,
    non_max_suppression,
    overlaps,
    overlaps_of_any,
    rank_scores,
    row_lookup,
)

_POLYGONS = (8, 16, 24, 32)
"""The valid sizes of a polygon: two coordinates per corner."""


class _Suppression(Operator):
    """Base class of operators with tables of selected objects as outputs."""

    __slots__ = ()
    data_dependent = True
    return_index: Parameter[bool]

    def output_count(self) -> int:
        return 3 if self.return_index else 2

    def infer_element_type(self) -> Sequence[ElementType]:
        (slot, boxes), *_ = self.filled()
        kinds = [slot.element_type(boxes), ElementType.INT32, ElementType.INT32]
        return kinds[: self.output_count()]


@operator("NON_MAX_SUPPRESSION", core=True)
class NonMaxSuppression(_Suppression):
    """The best boxes of each class, without those that overlap a better one of the same class.

    `bboxes` is [N, M, 4] (x_min, y_min, x_max, y_max) and `scores` [N, C, M]; or, with `rois_num`
    [N], the number of rows of each image, `bboxes` is [M, C, 4], a box per class, and `scores` [M,
    C].

    For each image and each class except `background_label`, boxes with a score greater than
    `score_threshold` are sorted by descending score (stable), and the first `nms_top_k` remain (all
    if negative). They are visited in this order; a box is selected unless its overlap with a
    selected one exceeds the threshold. The threshold is initially `nms_threshold`; after each
    selection, it is multiplied by `nms_eta` if that is less than 1 and the threshold greater than
    0.5; a negative `nms_eta` is an error. The overlap is intersection over union; without
    `normalized`, widths and heights are the difference of coordinates plus one, and disjoint boxes
    have overlap 0. Of all classes together, the `keep_top_k` boxes with the highest scores remain
    (all if negative; of equal scores, those of lower classes).

    Outputs: [K, 6] rows of class, score and box, ordered by image, class, and descending score
    (with `rois_num`, by index); [N] the number of rows of each image, int32; with `return_index`,
    [K, 1] int32: the row of each box in `bboxes` as [N * M, 4] (or [M * C, 4]).

    A score of NaN does not exceed a threshold; with boxes that contain NaN or an infinity or have
    swapped corners, the outputs are unspecified. Sources: NNAdapter's NON_MAX_SUPPRESSION, which
    only its code has; Paddle's multiclass_nms3.
    """

    __slots__ = ()
    bboxes = tensor(FLOATS)
    scores = tensor(FLOATS, like="bboxes")
    rois_num = optional_tensor(INDICES)
    background_label = integer(0)
    score_threshold = real(0.0)
    nms_top_k = integer(-1)
    nms_threshold = real(0.3)
    nms_eta = real(1.0, least=0)
    keep_top_k = integer(-1)
    normalized = flag(True)
    return_index = flag(False)

    def infer_shape(self) -> Sequence[Shape]:
        boxes, scores = shape_of(self.bboxes), shape_of(self.scores)
        first = require_rank(boxes, 3, "bboxes")[0]
        unify(boxes[2], 4, "bboxes: the size of its last axis, and the numbers of a box")
        require_rank(scores, 2 if self.rois_num else 3, "scores")
        actual = (scores[0], scores[1] if self.rois_num else scores[2])
        for size, expected in zip(actual, boxes, strict=False):
            unify(size, expected, "scores: its sizes, and those of bboxes")
        images: Dim = first
        if self.rois_num:
            images = require_rank(shape_of(self.rois_num), 1, "rois_num")[0]
        count = unknown()
        return [(count, 6), (images,), (count, 1)][: self.output_count()]

    def reference(self, bboxes: Array, scores: Array, rois_num: Array | None) -> Sequence[Array]:
        pixel = 0.0 if self.normalized else 1.0
        images = _images(bboxes, scores, rois_num)
        overlaps_of_images = [
            [row_lookup(overlaps_of_any(of_class, pixel)) for of_class in boxes]
            for boxes, _, _ in images
        ]
        return _selected_rows(self, bboxes, images, overlaps_of_images)


@operator("POLYGON_NON_MAX_SUPPRESSION", core=True)
class PolygonNonMaxSuppression(_Suppression):
    """The best polygons of each class, without those that overlap a better one of the same class.

    `bboxes` is [N, M, B], the alternating x and y of a polygon's corners (B is 8, 16, 24 or 32),
    and `scores` [N, C, M]. The polygons are selected as boxes are in NON_MAX_SUPPRESSION, with the
    parameters of the same names, except that the overlap is the area inside both outlines divided
    by the area inside either, 0 if one of the outlines has area 0.

    Outputs: [K, 2 + B] rows of class, score and polygon, ordered by image, class, and descending
    score; [N] the number of rows of each image, int32; with `return_index`, [K, 1] int32: the row
    of each polygon in `bboxes` as [N * M, B].

    A score of NaN does not exceed a threshold; with corners that contain NaN or an infinity, or
    self-intersecting polygons, the outputs are unspecified. (For the latter, the reference computes
    what Paddle does: areas by the shoelace formula, intersections by the even-odd rule, including
    their holes.) Source: Paddle's multiclass_nms3.
    """

    __slots__ = ()
    bboxes = tensor(FLOATS)
    scores = tensor(FLOATS, like="bboxes")
    background_label = integer(0)
    score_threshold = real(0.0)
    nms_top_k = integer(-1)
    nms_threshold = real(0.3)
    nms_eta = real(1.0, least=0)
    keep_top_k = integer(-1)
    return_index = flag(False)

    def infer_shape(self) -> Sequence[Shape]:
        images, count, numbers = require_rank(shape_of(self.bboxes), 3, "bboxes")
        if isinstance(numbers, int) and numbers not in _POLYGONS:
            raise ValueError(f"bboxes: {numbers} numbers are no polygon; it has 8, 16, 24 or 32")
        scores = require_rank(shape_of(self.scores), 3, "scores")
        for size, of_boxes in ((scores[0], images), (scores[2], count)):
            unify(size, of_boxes, "scores: its sizes, and those of bboxes")
        rows = unknown()
        shapes: list[Shape] = [(rows, numbers + 2), (images,), (rows, 1)]
        return shapes[: self.output_count()]

    def reference(self, bboxes: Array, scores: Array) -> Sequence[Array]:
        overlaps_of_images = [[PolygonOverlaps(polygons)] * scores.shape[1] for polygons in bboxes]
        images = _images(bboxes, scores, None)
        return _selected_rows(self, bboxes, images, overlaps_of_images)


def _selected_rows(
    op: NonMaxSuppression | PolygonNonMaxSuppression,
    bboxes: Array,
    images: Sequence[tuple[Array, Array, Array]],
    overlaps_of_images: Sequence[Sequence[OverlapsWith]],
) -> Sequence[Array]:
    """Return the outputs of the operator.

    Args:
        op: the operator.
        bboxes: the boxes of all images.
        images: the result of `_images`.
        overlaps_of_images: for each image and class a function that returns overlaps of its boxes.
    """
    table: list[Array] = []
    row_numbers: list[int] = []
    counts = []
    by_index = isinstance(op, NonMaxSuppression) and bool(op.rois_num)
    for (boxes, scores, rows), overlaps_with in zip(images, overlaps_of_images, strict=True):
        selected: list[tuple[int, int]] = []
        for label in range(len(scores)):
            if label == op.background_label:
                continue
            order = rank_scores(scores[label], op.score_threshold)
            order = order[: op.nms_top_k] if op.nms_top_k >= 0 else order
            remaining = non_max_suppression(
                order, overlaps_with[label], op.nms_threshold, op.nms_eta
            )
            selected += [(label, box) for box in remaining]
        if 0 <= op.keep_top_k < len(selected):
            best = sorted(selected, key=lambda entry: -scores[entry])[: op.keep_top_k]
            selected = sorted(best, key=lambda entry: entry[0])
        if by_index:
            selected.sort()
        table += [np.concatenate([[c, scores[c, i]], boxes[c, i]]) for c, i in selected]
        row_numbers += [int(rows[entry]) for entry in selected]
        counts.append(len(selected))
    outputs = [
        np.array(table, bboxes.dtype).reshape(-1, bboxes.shape[-1] + 2),
        np.array(counts, np.int32),
        np.array(row_numbers, np.int32).reshape(-1, 1),
    ]
    return outputs[: op.output_count()]


@operator("NON_MAX_SUPPRESSION_INDICES", core=True)
class NonMaxSuppressionIndices(Operator):
    """The boxes of each class that remain without those that overlap a better one.

    `boxes` is [N, M, 4], `scores` [N, C, M]. A box is y1, x1, y2, x2, two corners in any order, or,
    with `center_point_box`, x_centre, y_centre, width, height. For each image and class, boxes with
    a score greater than `score_threshold` are visited in descending order of score (equal scores by
    index). A box is selected unless its overlap (intersection over union; 0 if a width, a height or
    an area is not positive) with a selected one exceeds `iou_threshold`, which must not be
    negative, until there are `max_output_boxes_per_class`.

    The output is [K, 3] int64: image, class and box, in that order. A score of NaN does not exceed
    a threshold; with boxes that contain NaN or an infinity, the output is unspecified. Source:
    ONNX's NonMaxSuppression.
    """

    __slots__ = ()
    data_dependent = True
    boxes = tensor(FLOATS)
    scores = tensor(FLOATS, like="boxes")
    max_output_boxes_per_class = integer(0)
    iou_threshold = real(0.0, least=0)
    score_threshold = real(-np.inf)
    center_point_box = flag(False)

    def infer_element_type(self) -> ElementType:
        return ElementType.INT64

    def infer_shape(self) -> Shape:
        boxes = require_rank(shape_of(self.boxes), 3, "boxes")
        scores = require_rank(shape_of(self.scores), 3, "scores")
        unify(boxes[2], 4, "boxes: the size of its last axis, and the numbers of a box")
        unify(boxes[0], scores[0], "scores: its first size, and that of boxes")
        unify(boxes[1], scores[2], "scores: its last size, and the number of boxes")
        return (unknown(), 3)

    def reference(self, boxes: Array, scores: Array) -> Array:
        first, second = boxes[..., :2], boxes[..., 2:]
        if self.center_point_box:
            low, high = first - second / 2, first + second / 2
        else:
            low, high = np.minimum(first, second), np.maximum(first, second)
        corners = np.concatenate([low, high], axis=-1)
        detections = []
        for image, class_scores in enumerate(scores):
            overlaps_with = row_lookup(overlaps(corners[image], 0.0))
            for label, ranking in enumerate(class_scores):
                order = rank_scores(ranking, self.score_threshold)
                selected = non_max_suppression(
                    order, overlaps_with, self.iou_threshold, 1.0, self.max_output_boxes_per_class
                )
                detections += [(image, label, box) for box in selected]
        return np.array(detections, np.int64).reshape(-1, 3)


def _images(boxes: Array, scores: Array, counts: Array | None) -> list[tuple[Array, Array, Array]]:
    """Return, for each image, boxes [C, M, B], scores [C, M] and their row numbers [C, M]."""
    if counts is None:
        classes, count = scores.shape[1:]
        rows = np.arange(boxes.shape[0] * count).reshape(boxes.shape[0], 1, count)
        return [
            (
                np.broadcast_to(boxes[image], (classes, count, boxes.shape[-1])),
                scores[image],
                np.broadcast_to(rows[image], (classes, count)),
            )
            for image in range(boxes.shape[0])
        ]
    if not len(counts):
        return []
    ends = np.cumsum(counts)[:-1]
    row_numbers = np.arange(scores.size).reshape(scores.shape)
    parts = (np.split(array, ends) for array in (boxes, scores, row_numbers))
    return [
        (part.swapaxes(0, 1), class_scores.T, count.T)
        for part, class_scores, count in zip(*parts, strict=True)
    ]
