"""Detectors' operators: against ONNX's evaluator, and cases worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import of_onnx

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, ModelError, Operand, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.convolution import DeformableConv2D
from crosschip.ops.standard.detection import DetectionPostProcess, PriorBox, YoloBox
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


def run(operator: type[Operator], inputs: dict[str, Array], **settings: Any) -> list[Array]:
    """What the reference computes."""
    b = Builder()
    operands: dict[str, Any] = {
        name: b.input(name, TensorType(ElementType.of(array.dtype), array.shape))
        for name, array in inputs.items()
    }
    for index, operand in enumerate(b.add_all(operator, **operands, **settings)):
        b.output(str(index), operand)
    return list(ReferenceDevice().compile(b.build(), Options()).run([*inputs.values()]))


def some_boxes(random: np.random.Generator, *shape: int) -> Array:
    """Corners in any order, so close that many boxes overlap."""
    return random.uniform(0, 10, (*shape, 4)).astype(np.float32)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("most", [0, 2, 100])
@pytest.mark.parametrize(("overlap", "score"), [(0.0, 0.0), (0.3, 0.4), (0.9, 0.95)])
def test_indices(center: bool, most: int, overlap: float, score: float) -> None:
    random = np.random.default_rng(9)
    boxes = some_boxes(random, 2, 30)
    scores = np.round(random.uniform(0, 1, (2, 3, 30)), 1).astype(np.float32)
    actual = run(
        NonMaxSuppressionIndices,
        {"boxes": boxes, "scores": scores},
        max_output_boxes_per_class=most,
        iou_threshold=overlap,
        score_threshold=score,
        center_point_box=center,
    )
    compute = of_onnx("NonMaxSuppression", center_point_box=int(center))
    limits = [np.array([most]), *(np.array([n], np.float32) for n in (overlap, score))]
    (expected,) = compute(boxes, scores, *limits)
    np.testing.assert_array_equal(actual[0], expected.reshape(-1, 3))


def test_indices_without_a_threshold() -> None:
    """Scores below 0 count too, a NaN never does; there is no box for a third image's class."""
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [8, 8, 9, 9]]], np.float32)
    scores = np.array([[[-3, np.nan, -2]]], np.float32)
    (found,) = run(
        NonMaxSuppressionIndices,
        {"boxes": boxes, "scores": scores},
        max_output_boxes_per_class=5,
    )
    assert found.tolist() == [[0, 0, 2], [0, 0, 0]]


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("mode", RoiMode)
def test_roi_align(check: Checker, ratio: int, aligned: bool, mode: RoiMode) -> None:
    rois = np.array([[0.4, 1.5, 5.1, 6.2], [-2.0, 0.0, 9.0, 3.3]], np.float32)
    compute = of_onnx(
        "RoiAlign",
        mode="max" if mode is RoiMode.MAX else "avg",
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        output_height=3,
        output_width=2,
        sampling_ratio=ratio,
        spatial_scale=0.8,
    )
    check(
        lambda b, *operands: b.add(RoiAlign, *operands, 3, 2, ratio, 0.8, aligned, mode),
        compute,
        *((2, 2, 7, 6), rois, np.array([1, 0])),
    )


# Three anchors of 2 by 2, the second beside the first by half its width, the third far away.
ANCHORS = np.array([[1, 1, 2, 2], [1, 1.5, 2, 2], [8, 8, 2, 2]], np.float32)
BOXES = [[0, 0, 2, 2], [0, 0.5, 2, 2.5], [7, 7, 9, 9]]
SCORES = np.array([[[0, 0.9, 0.2], [0, 0.8, 0.3], [0, 0.1, 0.7]]], np.float32)


def post_processed(bbox: Array | None = None, **settings: Any) -> list[list[Any]]:
    given: dict[str, Any] = {
        "num_classes": 2,
        "max_detections": 3,
        "nms_iou_threshold": 0.5,
        "nms_score_threshold": 0.15,
    }
    encoded = np.zeros((1, 3, 4), np.float32) if bbox is None else bbox
    inputs = {"bbox": encoded, "scores": SCORES, "anchors": ANCHORS}
    found = run(DetectionPostProcess, inputs, **given | settings)
    assert {array.dtype for array in found} == {np.dtype(np.float32)}
    return [np.round(array, 4).tolist() for array in found]


def test_best_class_of_each_box() -> None:
    """Boxes 0 and 1 share 3 of 5 parts, so that 1 goes; 2 is the second object."""
    boxes, classes, scores, count = post_processed()
    assert boxes == [[BOXES[0], BOXES[2], [0, 0, 0, 0]]]
    assert (classes, count) == ([[0, 1, 0]], [2])
    np.testing.assert_allclose(scores, [[0.9, 0.7, 0]], rtol=1e-6)


def test_several_classes_of_each_box() -> None:
    boxes, classes, scores, count = post_processed(
        max_classes_per_detection=2, nms_iou_threshold=0.7, max_detections=2
    )
    assert boxes == [[BOXES[0], BOXES[0], BOXES[1], BOXES[1]]]
    assert classes == [[0, 1, 0, 1]]
    np.testing.assert_allclose(scores, [[0.9, 0.2, 0.8, 0.3]], rtol=1e-6)
    assert count == [2]


def test_each_class_by_itself() -> None:
    """Of class 0 box 0 stays; of class 1 box 2 and, where 0.2 is behind 0.3, box 1 for box 0."""
    boxes, classes, scores, count = post_processed(use_regular_nms=True)
    assert boxes == [[BOXES[0], BOXES[2], BOXES[1]]]
    assert classes == [[0, 1, 1]]
    np.testing.assert_allclose(scores, [[0.9, 0.7, 0.3]], rtol=1e-6)
    assert count == [3]
    *_, count = post_processed(use_regular_nms=True, detections_per_class=1)
    assert count == [2]


def test_decoding() -> None:
    """Centre moved by 1 / 10 of the anchor's side, height times e, width as it was."""
    bbox = np.zeros((1, 3, 4), np.float32)
    bbox[0, 0] = [1, 2, 5, 0]
    boxes, *_ = post_processed(bbox, max_detections=1)
    y, x, height = 1 + 0.1 * 2, 1 + 0.2 * 2, 2 * np.e
    expected = [y - height / 2, x - 1, y + height / 2, x + 1]
    np.testing.assert_allclose(boxes[0][0], expected, atol=1e-4)


def test_no_class_in_front() -> None:
    inputs = {"bbox": np.zeros((1, 3, 4), np.float32), "scores": SCORES[..., 1:]}
    found = run(DetectionPostProcess, {**inputs, "anchors": ANCHORS}, num_classes=2)
    assert found[1][0, :2].tolist() == [0, 1]


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
