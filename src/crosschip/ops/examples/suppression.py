"""Examples of non-maximum suppression."""

from __future__ import annotations

import numpy as np

from crosschip.ops.definition.examples import Sample, example, examples, model_input
from crosschip.ops.standard.suppression import (
    NonMaxSuppression,
    NonMaxSuppressionIndices,
    PolygonNonMaxSuppression,
)


def _boxes(generator: np.random.Generator, *shape: int) -> Sample:
    """Return random boxes as x_min, y_min, x_max, y_max, many of which overlap."""
    corners = generator.uniform(0, 20, (*shape, 2))
    extents = generator.uniform(4, 20, (*shape, 2))
    return model_input(np.concatenate([corners, corners + extents], axis=-1).astype(np.float32))


def _scores(generator: np.random.Generator, *shape: int) -> Sample:
    return model_input(generator.uniform(0, 1, shape).astype(np.float32))


_generator = np.random.default_rng(7)
examples(
    NonMaxSuppression,
    example(
        bboxes=_boxes(_generator, 2, 12),
        scores=_scores(_generator, 2, 3, 12),
        background_label=-1,
        score_threshold=0.3,
        nms_top_k=8,
        nms_threshold=0.4,
        keep_top_k=7,
        return_index=True,
    ),
    example(
        bboxes=_boxes(_generator, 1, 10),
        scores=_scores(_generator, 1, 2, 10),
        nms_threshold=0.6,
        nms_eta=0.9,
        normalized=False,
    ),
    example(
        bboxes=_boxes(_generator, 9, 2),
        scores=_scores(_generator, 9, 2),
        rois_num=model_input(np.array([4, 5], np.int32)),
        background_label=-1,
        score_threshold=0.2,
        nms_threshold=0.5,
        keep_top_k=5,
        return_index=True,
    ),
)


def _polygons(generator: np.random.Generator, count: int, corners: int) -> Sample:
    """Return random convex polygons [1, count, 2 * corners], many of which overlap."""
    angle = np.sort(generator.uniform(0, 2 * np.pi, (1, count, corners)), axis=-1)
    offsets = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * generator.uniform(4, 9)
    points = generator.uniform(0, 12, (1, count, 1, 2)) + offsets
    return model_input(points.reshape(1, count, -1).astype(np.float32))


_generator = np.random.default_rng(9)
examples(
    PolygonNonMaxSuppression,
    example(
        bboxes=_polygons(_generator, 12, 4),
        scores=_scores(_generator, 1, 3, 12),
        background_label=-1,
        score_threshold=0.3,
        nms_top_k=8,
        nms_threshold=0.4,
        keep_top_k=7,
        return_index=True,
    ),
    example(
        bboxes=_polygons(_generator, 10, 8),
        scores=_scores(_generator, 1, 2, 10),
        nms_threshold=0.6,
        nms_eta=0.9,
    ),
)

_generator = np.random.default_rng(8)
examples(
    NonMaxSuppressionIndices,
    example(
        boxes=_boxes(_generator, 2, 10),
        scores=_scores(_generator, 2, 3, 10),
        max_output_boxes_per_class=4,
        iou_threshold=0.4,
        score_threshold=0.2,
    ),
    example(
        boxes=_boxes(_generator, 1, 10),
        scores=_scores(_generator, 1, 2, 10),
        max_output_boxes_per_class=20,
        iou_threshold=0.3,
        center_point_box=True,
    ),
    example(boxes=_boxes(_generator, 1, 4), scores=_scores(_generator, 1, 1, 4)),
)
