"""Boxes of object detectors."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from crosschip.devices.xla.converters.boxes import suppress
from crosschip.devices.xla.converters.table import (
    converts,
    decomposed,
)
from crosschip.devices.xla.graph import Graph, Value
from crosschip.ops.standard.detection import DetectionPostProcess, PriorBox, YoloBox

converts(PriorBox)(decomposed)
converts(YoloBox)(decomposed)


@converts(DetectionPostProcess)
def detection_post_process(g: Graph, op: DetectionPostProcess) -> Sequence[Value]:
    boxes = _boxes(op, g[op.bbox][0], g[op.anchors])
    class_scores = g[op.scores][0]
    class_scores = class_scores[:, class_scores.shape[1] - op.num_classes :]
    if not class_scores.size or not op.max_detections:
        return [jnp.zeros(output.type.static_shape or ()) for output in op.outputs]
    choose = _of_each_class if op.use_regular_nms else _of_all_classes
    places, labels, there, count = choose(op, boxes, class_scores)
    outputs = []
    for values in (boxes[places], labels, class_scores[places, labels]):
        shown = jnp.where(there.reshape(-1, *(1,) * (values.ndim - 1)), values, 0)
        wanted = op.max_detections * op.max_classes_per_detection
        rest = [(0, wanted - shown.shape[0]), *((0, 0) for _ in shown.shape[1:])]
        outputs.append(jnp.pad(shown, rest)[None])
    return [*outputs, count[None]]


def _boxes(op: DetectionPostProcess, encoded: Value, anchors: Value) -> Value:
    """Two corners of each candidate, as [M, 4]."""
    numbers = encoded / jnp.asarray(op.scale, encoded.dtype)
    centre = numbers[:, :2] * anchors[:, 2:] + anchors[:, :2]
    half = jnp.exp(numbers[:, 2:]) * anchors[:, 2:] / 2
    return jnp.concatenate([centre - half, centre + half], 1)


def _of_all_classes(
    op: DetectionPostProcess, boxes: Value, class_scores: Value
) -> tuple[Value, Value, Value, Value]:
    """Candidates and classes, whether there is one at each place, and how many candidates."""
    selected, count = _select(op, boxes, jnp.max(class_scores, 1), op.max_detections)
    order = jnp.argsort(-class_scores, 1, stable=True)[:, : op.max_classes_per_detection]
    spare = op.max_classes_per_detection - order.shape[1]
    labels = jnp.pad(order[selected], [(0, 0), (0, spare)])
    there = (jnp.arange(op.max_detections) < count)[:, None]
    there = there & (jnp.arange(op.max_classes_per_detection) < order.shape[1])
    places = jnp.repeat(selected, op.max_classes_per_detection)
    return places, labels.reshape(-1), there.reshape(-1), count


def _of_each_class(
    op: DetectionPostProcess, boxes: Value, class_scores: Value
) -> tuple[Value, Value, Value, Value]:
    """The same, of the best of what is kept for each class by itself."""
    most = max(0, min(op.detections_per_class, op.max_detections))
    selected, counts = jax.vmap(lambda scores: _select(op, boxes, scores, most))(class_scores.T)
    labels = jnp.broadcast_to(jnp.arange(op.num_classes)[:, None], selected.shape)
    missing = jnp.arange(most) >= counts[:, None]
    places, labels, missing = (each.reshape(-1) for each in (selected, labels, missing))
    best = jnp.lexsort((-class_scores[places, labels], missing))[: op.max_detections]
    there = ~missing[best]
    return places[best], labels[best], there, jnp.sum(there)


def _select(
    op: DetectionPostProcess, boxes: Value, scores: Value, most: int
) -> tuple[Value, Value]:
    """The best candidates that do not overlap a better one of them, and how many there are."""
    if not most or not scores.size:
        return jnp.zeros(most, jnp.int64), jnp.zeros((), jnp.int64)
    candidates = scores >= jnp.asarray(op.nms_score_threshold, scores.dtype)
    return suppress(boxes, scores, candidates, most, op.nms_iou_threshold)
