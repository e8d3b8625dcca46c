"""Prior boxes, decoding and detections: cases computed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.detection import DetectionPostProcess

if TYPE_CHECKING:
    pass


def run(operator: type[Operator], inputs: dict[str, Array], **settings: Any) -> list[Array]:
    """Return the reference's outputs."""
    b = Builder()
    operands: dict[str, Any] = {
        name: b.input(name, TensorType(ElementType.of(array.dtype), array.shape))
        for name, array in inputs.items()
    }
    for index, operand in enumerate(b.add_all(operator, **operands, **settings)):
        b.output(str(index), operand)
    return list(ReferenceDevice().compile(b.build(), Options()).run([*inputs.values()]))


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
    """Boxes 0 and 1 share 3 of 5 parts, so box 1 is suppressed; box 2 is the second object."""
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
    """Of class 0, box 0 remains; of class 1, box 2 and, as 0.2 < 0.3, box 1 instead of box 0."""
    boxes, classes, scores, count = post_processed(use_regular_nms=True)
    assert boxes == [[BOXES[0], BOXES[2], BOXES[1]]]
    assert classes == [[0, 1, 1]]
    np.testing.assert_allclose(scores, [[0.9, 0.7, 0.3]], rtol=1e-6)
    assert count == [3]
    *_, count = post_processed(use_regular_nms=True, detections_per_class=1)
    assert count == [2]


def test_decoding() -> None:
    """The centre moves by 1 / 10 of the anchor's side, the height grows by e, the width stays."""
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
