"""Detected objects."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.suppression import overlaps, ranked, suppress
from crosschip.devices.torch.converters.table import COMPUTED, converts
from crosschip.ops.standard.detection import DetectionPostProcess


@converts(DetectionPostProcess, types=COMPUTED)
def detection_post_process(op: DetectionPostProcess) -> Kernel:
    rows, each = op.max_detections, op.max_classes_per_detection

    def run(bbox: Tensor, scores: Tensor, anchors: Tensor) -> Sequence[Tensor]:
        encoded = bbox[0] / torch.tensor(op.scale, dtype=bbox.dtype, device=bbox.device)
        centre = encoded[:, :2] * anchors[:, 2:] + anchors[:, :2]
        half = torch.exp(encoded[:, 2:]) * anchors[:, 2:] / 2
        boxes = torch.cat([centre - half, centre + half], 1)
        class_scores = scores[0][:, scores.shape[2] - op.num_classes :]
        choose = _of_each_class if op.use_regular_nms else _of_all_classes
        places, entries, count = choose(op, boxes, class_scores)
        box, label = torch.tensor(entries, dtype=torch.int64, device=bbox.device).reshape(-1, 2).T
        outputs = [bbox.new_zeros((rows * each, 4)), *bbox.new_zeros((2, rows * each))]
        for output, values in zip(
            outputs, (boxes[box], label, class_scores[box, label]), strict=True
        ):
            output[places] = values.to(output.dtype)
        return [*(output[None] for output in outputs), bbox.new_full((1,), count)]

    return run


Selection = tuple[list[int], list[tuple[int, int]], int]
"""The places of entries in the outputs, the box and the class of each, and how many objects."""


def _of_all_classes(op: DetectionPostProcess, boxes: Tensor, scores: Tensor) -> Selection:
    """Select boxes by their best classes; each gives several classes."""
    if not scores.numel():
        return [], [], 0
    selected = _select(op, overlaps(boxes), scores.amax(1), op.max_detections)
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices
    labels = order[:, : op.max_classes_per_detection].tolist()
    entries = [(box, label) for box in selected for label in labels[box]]
    width, each = op.max_classes_per_detection, min(op.max_classes_per_detection, scores.shape[1])
    places = [row * width + rank for row in range(len(selected)) for rank in range(each)]
    return places, entries, len(selected)


def _of_each_class(op: DetectionPostProcess, boxes: Tensor, scores: Tensor) -> Selection:
    """Select boxes of each class, and the best of all of them."""
    most = min(op.detections_per_class, op.max_detections)
    overlap = overlaps(boxes)
    entries = [
        (box, label)
        for label in range(op.num_classes)
        for box in _select(op, overlap, scores[:, label], most)
    ]
    best = sorted(entries, key=lambda entry: -float(scores[entry]))[: op.max_detections]
    return list(range(len(best))), best, len(best)


def _select(op: DetectionPostProcess, overlap: Tensor, scores: Tensor, most: int) -> list[int]:
    least = torch.tensor(op.nms_score_threshold, dtype=scores.dtype, device=scores.device)
    return suppress(ranked(scores, scores >= least), overlap, op.nms_iou_threshold, most)
