"""Non-maximum suppression, with as many rows as there may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from crosschip.devices.xla.converters.boxes import suppress
from crosschip.devices.xla.converters.table import as_element, converts, shape_of
from crosschip.devices.xla.graph import Graph, Value
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
    places = _filled(g, jnp.arange(most) < counts[..., None], selected.size)
    return jnp.stack([*places[:2], selected[places]], -1)


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
    there = jnp.arange(most) < counts[..., None]
    wanted = classes * most
    if op.keep_top_k >= 0:
        wanted = min(wanted, op.keep_top_k)
        own = jnp.take_along_axis(class_scores, selected, -1).reshape(images, -1)
        there &= (_ranks(own, there.reshape(own.shape)) < op.keep_top_k).reshape(there.shape)
    if op.rois_num:
        order = jnp.argsort(jnp.where(there, selected, count), -1)
        selected, there = (jnp.take_along_axis(each, order, -1) for each in (selected, there))
    places = _filled(g, there, images * wanted)
    image, label = places[:2]
    box = selected[places]
    corners = boxes[image, label, box] if op.rois_num else boxes[image, box]
    score = class_scores[image, label, box]
    table = jnp.concatenate([jnp.stack([label.astype(score.dtype), score], 1), corners], 1)
    counts = there.sum((1, 2), dtype=jnp.int32)
    return [table, counts, rows(image, label, box)[:, None].astype(jnp.int32)][: len(op.outputs)]


def _images(g: Graph, op: NonMaxSuppression) -> tuple[Value, Value, Value, Callable[..., Value]]:
    """The boxes of each image, as they are given or as regions of all images with a count each.

    Returns:
        boxes: [N, M, 4], or of regions [N, C, M, 4].
        scores: [N, C, M].
        own: whether each box is one of the image's, [N, 1, M].
        rows: makes of an image, a class and a box the row that this is in the operator's input.
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
    own = (numbers >= begins[:, None]) & (numbers < ends[:, None])
    boxes = jnp.broadcast_to(boxes.swapaxes(0, 1), (images, classes, count, 4))
    class_scores = jnp.broadcast_to(class_scores.T, (images, classes, count))
    return boxes, class_scores, own[:, None], lambda image, label, box: box * classes + label


def _ranks(scores: Value, candidates: Value) -> Value:
    """The place of each in an order by falling score, equal ones as they come."""
    order = jnp.argsort(jnp.where(candidates, -scores, jnp.inf), -1, stable=True)
    numbers = jnp.arange(order.shape[-1])
    return jnp.put_along_axis(jnp.zeros_like(order), order, numbers, -1, inplace=False)


def _filled(g: Graph, there: Value, most: int) -> tuple[Value, ...]:
    """The places where something is, in C order, as an array of indices for each axis."""
    g.fill(there.sum())
    return jnp.nonzero(there, size=most, fill_value=0)
