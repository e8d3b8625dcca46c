"""Non-maximum suppression; outputs have the greatest possible number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters.boxes import suppress
from crosschip.devices.kits.stablehlo.converters.table import as_element, converts, shape_of
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices


@converts(NonMaxSuppressionIndices)
def non_max_suppression_indices(g: Graph, op: NonMaxSuppressionIndices) -> Value:
    boxes, scores = g[op.boxes], g[op.scores]
    most = min(op.max_output_boxes_per_class, scores.shape[2])
    if most <= 0 or not scores.size:
        g.fill(jnp.zeros((), jnp.int64))
        return jnp.zeros((0, 3), jnp.int64)
    first, second = boxes[..., :2], boxes[..., 2:]
    if op.center_point_box:
        low, high = first - second / 2, first + second / 2
    else:
        low, high = jnp.minimum(first, second), jnp.maximum(first, second)
    corners = jnp.concatenate([low, high], -1)

    def choose(boxes: Value, class_scores: Value, candidates: Value) -> tuple[Value, Value]:
        return suppress(boxes, class_scores, candidates, most, op.iou_threshold)

    of_classes = jax.vmap(choose, (None, 0, 0))
    beyond = scores > as_element(op.score_threshold, scores)
    selected, counts = jax.vmap(of_classes)(corners, scores, beyond)
    indices = _true_indices(g, jnp.arange(most) < counts[..., None], selected.size)
    return jnp.stack([*indices[:2], selected[indices]], -1)


@converts(NonMaxSuppression)
def non_max_suppression(g: Graph, op: NonMaxSuppression) -> Sequence[Value]:
    boxes, class_scores, candidates, rows = _images(g, op)
    images, classes, count = class_scores.shape
    most = min(count, op.nms_top_k) if op.nms_top_k >= 0 else count
    if not images * classes * most or op.keep_top_k == 0:
        g.fill(jnp.zeros((), jnp.int64))
        table = jnp.zeros((0, 6), boxes.dtype)
        counts = jnp.zeros(shape_of(op, 1), jnp.int32)
        return [table, counts, jnp.zeros((0, 1), jnp.int32)][: len(op.outputs)]
    candidates &= class_scores > as_element(op.score_threshold, class_scores)
    candidates &= (jnp.arange(classes) != op.background_label)[:, None]
    if most < count:
        candidates &= _ranks(class_scores, candidates) < most

    def choose(boxes: Value, class_scores: Value, candidates: Value) -> tuple[Value, Value]:
        pixel = 0.0 if op.normalized else 1.0
        eta, threshold = op.nms_eta, op.nms_threshold
        return suppress(boxes, class_scores, candidates, most, threshold, eta=eta, pixel=pixel)

    of_classes = jax.vmap(choose, (0 if op.rois_num else None, 0, 0))
    selected, counts = jax.vmap(of_classes)(boxes, class_scores, candidates)
    valid = jnp.arange(most) < counts[..., None]
    row_count = classes * most
    if op.keep_top_k >= 0:
        row_count = min(row_count, op.keep_top_k)
        selected_scores = jnp.take_along_axis(class_scores, selected, -1).reshape(images, -1)
        valid &= (
            _ranks(selected_scores, valid.reshape(selected_scores.shape)) < op.keep_top_k
        ).reshape(valid.shape)
    if op.rois_num:
        order = jnp.argsort(jnp.where(valid, selected, count), -1)
        selected, valid = (jnp.take_along_axis(each, order, -1) for each in (selected, valid))
    indices = _true_indices(g, valid, images * row_count)
    image, label = indices[:2]
    box = selected[indices]
    corners = boxes[image, label, box] if op.rois_num else boxes[image, box]
    score = class_scores[image, label, box]
    table = jnp.concatenate([jnp.stack([label.astype(score.dtype), score], 1), corners], 1)
    counts = valid.sum((1, 2), dtype=jnp.int32)
    return [table, counts, rows(image, label, box)[:, None].astype(jnp.int32)][: len(op.outputs)]


def _images(g: Graph, op: NonMaxSuppression) -> tuple[Value, Value, Value, Callable[..., Value]]:
    """Return the boxes of each image, given per image or as regions of all images with counts.

    Returns:
        boxes: [N, M, 4], or [N, C, M, 4] for regions.
        scores: [N, C, M].
        belongs: whether each box belongs to the image, [N, 1, M].
        rows: returns the input row of an image, a class and a box.
    """
    boxes, class_scores = g[op.bboxes], g[op.scores]
    if op.rois_num is None:
        count = class_scores.shape[2]
        all_boxes = jnp.ones((class_scores.shape[0], 1, count), bool)
        return boxes, class_scores, all_boxes, lambda image, label, box: image * count + box
    count, classes = class_scores.shape
    ends = jnp.cumsum(g[op.rois_num])
    images = ends.shape[0]
    numbers = jnp.arange(count)
    begins = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    ends = ends.at[-1:].set(count)
    belongs = (numbers >= begins[:, None]) & (numbers < ends[:, None])
    boxes = jnp.broadcast_to(boxes.swapaxes(0, 1), (images, classes, count, 4))
    class_scores = jnp.broadcast_to(class_scores.T, (images, classes, count))
    return boxes, class_scores, belongs[:, None], lambda image, label, box: box * classes + label


def _ranks(scores: Value, candidates: Value) -> Value:
    """Return the rank of each score in descending, stable order."""
    order = jnp.argsort(jnp.where(candidates, -scores, jnp.inf), -1, stable=True)
    numbers = jnp.arange(order.shape[-1])
    return jnp.put_along_axis(jnp.zeros_like(order), order, numbers, -1, inplace=False)


def _true_indices(g: Graph, valid: Value, most: int) -> tuple[Value, ...]:
    """Return the indices of true elements in C order, one array per axis."""
    g.fill(valid.sum())
    return jnp.nonzero(valid, size=most, fill_value=0)
