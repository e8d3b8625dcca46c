"""Post-processing of object detectors."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters.boxes import suppress
from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed
from crosschip.devices.kits.stablehlo.graph import Graph, Value
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
    indices, labels, valid, count = choose(op, boxes, class_scores)
    outputs = []
    for values in (boxes[indices], labels, class_scores[indices, labels]):
        selected = jnp.where(valid.reshape(-1, *(1,) * (values.ndim - 1)), values, 0)
        row_count = op.max_detections * op.max_classes_per_detection
        padding = [(0, row_count - selected.shape[0]), *((0, 0) for _ in selected.shape[1:])]
        outputs.append(jnp.pad(selected, padding)[None])
    return [*outputs, count[None]]


def _boxes(op: DetectionPostProcess, encoded: Value, anchors: Value) -> Value:
    """Decode the corners of each candidate, [M, 4]."""
    numbers = encoded / jnp.asarray(op.scale, encoded.dtype)
    centre = numbers[:, :2] * anchors[:, 2:] + anchors[:, :2]
    half = jnp.exp(numbers[:, 2:]) * anchors[:, 2:] / 2
    return jnp.concatenate([centre - half, centre + half], 1)


def _of_all_classes(
    op: DetectionPostProcess, boxes: Value, class_scores: Value
) -> tuple[Value, Value, Value, Value]:
    """Select boxes for all classes; return boxes, classes, validity and the number of boxes."""
    selected, count = _select(op, boxes, jnp.max(class_scores, 1), op.max_detections)
    order = jnp.argsort(-class_scores, 1, stable=True)[:, : op.max_classes_per_detection]
    missing = op.max_classes_per_detection - order.shape[1]
    labels = jnp.pad(order[selected], [(0, 0), (0, missing)])
    valid = (jnp.arange(op.max_detections) < count)[:, None]
    valid = valid & (jnp.arange(op.max_classes_per_detection) < order.shape[1])
    indices = jnp.repeat(selected, op.max_classes_per_detection)
    return indices, labels.reshape(-1), valid.reshape(-1), count


def _of_each_class(
    op: DetectionPostProcess, boxes: Value, class_scores: Value
) -> tuple[Value, Value, Value, Value]:
    """Select boxes for each class, then the best of them; return as `_of_all_classes`."""
    most = max(0, min(op.detections_per_class, op.max_detections))
    selected, counts = jax.vmap(lambda scores: _select(op, boxes, scores, most))(class_scores.T)
    labels = jnp.broadcast_to(jnp.arange(op.num_classes)[:, None], selected.shape)
    missing = jnp.arange(most) >= counts[:, None]
    indices, labels, missing = (each.reshape(-1) for each in (selected, labels, missing))
    best = jnp.lexsort((-class_scores[indices, labels], missing))[: op.max_detections]
    valid = ~missing[best]
    return indices[best], labels[best], valid, jnp.sum(valid)


def _select(
    op: DetectionPostProcess, boxes: Value, scores: Value, most: int
) -> tuple[Value, Value]:
    """Select the best candidates that do not overlap a better one; return indices and count."""
    if not most or not scores.size:
        return jnp.zeros(most, jnp.int64), jnp.zeros((), jnp.int64)
    candidates = scores >= jnp.asarray(op.nms_score_threshold, scores.dtype)
    return suppress(boxes, scores, candidates, most, op.nms_iou_threshold)
