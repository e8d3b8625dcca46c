"""Invalid operations on images, regions and boxes are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.ir import Builder, ElementType, ModelError, Operand, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.deformable import DeformableConv2D
from crosschip.ops.standard.detection import DetectionPostProcess, PriorBox, YoloBox
from crosschip.ops.standard.sampling import GridSample, RoiAlign
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

if TYPE_CHECKING:
    pass


Shapes = dict[str, tuple[int, ...]]


REFUSED: list[tuple[type[Operator], Shapes, dict[str, Any], str]] = [
    (GridSample, {"input": (1, 1, 2, 2), "grid": (1, 2, 2, 3)}, {}, "grid: the size of its last"),
    (GridSample, {"input": (1, 1, 2, 2), "grid": (2, 2, 2, 2)}, {}, "grid: its first size"),
    (
        GridSample,
        {"input": (1, 1, 0, 2), "grid": (1, 2, 2, 2)},
        {},
        "input: an image of 0 by 2",
    ),
    (GridSample, {"input": (1, 2, 2), "grid": (1, 2, 2, 2)}, {}, "input: has 3 axes"),
    (
        GridSample,
        {"input": (1, 1, 2, 2), "grid": (1, 2, 2, 2)},
        {"pad_mode": 6},
        "pad_mode: WRAP is not one for samples",
    ),
    (
        RoiAlign,
        {"input": (1, 1, 2, 2), "rois": (3, 4), "batch_indices": (2,)},
        {"output_height": 1, "output_width": 1},
        "batch_indices: its size",
    ),
    (
        RoiAlign,
        {"input": (1, 1, 2, 2), "rois": (3, 4), "batch_indices": (3,)},
        {"output_height": 1, "output_width": 0},
        "output_width: 0 is not positive",
    ),
    (
        DeformableConv2D,
        {"input": (1, 2, 4, 4), "offset": (1, 8, 3, 2), "filter": (1, 2, 2, 2)},
        {},
        "offset: its shape",
    ),
    (
        DeformableConv2D,
        {"input": (1, 2, 4, 4), "offset": (1, 8, 3, 3), "filter": (1, 2, 2, 2)},
        {"deformable_group": 3},
        "deformable_group: 3 does not divide 2 channels",
    ),
    (
        PriorBox,
        {"input": (1, 1, 2, 2), "image": (1, 3, 8, 8)},
        {"min_sizes": (1.0, 2.0), "max_sizes": (3.0,)},
        "max_sizes: has 1 sizes, but min_sizes 2",
    ),
    (
        PriorBox,
        {"input": (1, 1, 2, 2), "image": (1, 3, 8, 8)},
        {"min_sizes": (-1.0,)},
        "min_sizes: .* not all positive",
    ),
    (
        PriorBox,
        {"input": (1, 1, 2, 2), "image": (1, 3, 8, 8)},
        {"min_sizes": (1.0,), "aspect_ratios": (np.inf,), "flip": True},
        "aspect_ratios: .* not all positive and finite",
    ),
    (
        NonMaxSuppression,
        {"bboxes": (1, 4, 4), "scores": (1, 2, 4)},
        {"nms_eta": np.nan},
        "nms_eta: nan is not at least 0",
    ),
    (
        PriorBox,
        {"input": (1, 1, 2, 2), "image": (1, 3, 8, 8)},
        {"min_sizes": (1.0,), "variances": (0.1,)},
        "variances: has 1 numbers",
    ),
    (
        YoloBox,
        {"input": (1, 13, 2, 2), "imgsize": (1, 2)},
        {"anchors": (1, 2, 3, 4), "class_num": 2, "conf_thresh": 0.1, "downsample_ratio": 8},
        "input: its channels",
    ),
    (
        YoloBox,
        {"input": (1, 14, 2, 2), "imgsize": (1, 2)},
        {"anchors": (1, 2, 3), "class_num": 2, "conf_thresh": 0.1, "downsample_ratio": 8},
        "anchors: .* are not pairs",
    ),
    (
        YoloBox,
        {"input": (1, 6, 2, 2), "imgsize": (1, 2)},
        {"anchors": (1, 2, 3, 4), "class_num": -2, "conf_thresh": 0.1, "downsample_ratio": 8},
        "class_num: -2 is negative",
    ),
    (NonMaxSuppression, {"bboxes": (1, 4, 5), "scores": (1, 2, 4)}, {}, "bboxes: the size of"),
    (NonMaxSuppression, {"bboxes": (1, 4, 4), "scores": (1, 2, 3)}, {}, "scores: its sizes"),
    (
        NonMaxSuppression,
        {"bboxes": (4, 2, 4), "scores": (1, 2, 4), "rois_num": (1,)},
        {},
        "scores: has 3 axes, but must have 2",
    ),
    (
        NonMaxSuppressionIndices,
        {"boxes": (1, 4, 4), "scores": (1, 2, 3)},
        {},
        "scores: its last size",
    ),
    (
        NonMaxSuppressionIndices,
        {"boxes": (1, 4, 4), "scores": (1, 2, 4)},
        {"iou_threshold": -0.5},
        "iou_threshold: -0.5 is not at least 0",
    ),
    (
        NonMaxSuppression,
        {"bboxes": (1, 4, 4), "scores": (1, 2, 4)},
        {"nms_eta": -1.0},
        "nms_eta: -1 is not at least 0",
    ),
    (
        DetectionPostProcess,
        {"bbox": (2, 3, 4), "scores": (1, 3, 2), "anchors": (3, 4)},
        {"num_classes": 1},
        "bbox: its first size",
    ),
    (
        DetectionPostProcess,
        {"bbox": (1, 3, 4), "scores": (1, 3, 4), "anchors": (3, 4)},
        {"num_classes": 2},
        "scores: has 4 classes, but num_classes 2",
    ),
    (
        DetectionPostProcess,
        {"bbox": (1, 3, 4), "scores": (1, 3, 0), "anchors": (3, 4)},
        {"num_classes": 0},
        "num_classes: 0 must not be less than 1",
    ),
    (
        DetectionPostProcess,
        {"bbox": (1, 3, 4), "scores": (1, 3, 2), "anchors": (3, 4)},
        {"num_classes": 2, "scale": (1.0, 2.0)},
        "scale: has 2 numbers",
    ),
]


@pytest.mark.parametrize(("operator", "shapes", "settings", "why"), REFUSED)
def test_refused(
    operator: type[Operator], shapes: Shapes, settings: dict[str, Any], why: str
) -> None:
    b = Builder()
    integers = {"batch_indices", "imgsize", "rois_num"}
    operands: dict[str, Operand] = {
        slot: b.input(
            slot, TensorType(ElementType.INT32 if slot in integers else ElementType.FLOAT32, shape)
        )
        for slot, shape in shapes.items()
    }
    arguments: dict[str, Any] = {**operands, **settings}
    with pytest.raises(ModelError, match=f"{operator.type}.{why}"):
        b.add(operator, **arguments)
