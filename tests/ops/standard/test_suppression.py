"""Non-maximum suppression, compared with ONNX's evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import of_onnx

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.suppression import NonMaxSuppressionIndices

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


def some_boxes(random: np.random.Generator, *shape: int) -> Array:
    """Return boxes with corners in any order, so close that many overlap."""
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
    """Scores below 0 count, NaN never does; a third image's class has no box."""
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [8, 8, 9, 9]]], np.float32)
    scores = np.array([[[-3, np.nan, -2]]], np.float32)
    (found,) = run(
        NonMaxSuppressionIndices,
        {"boxes": boxes, "scores": scores},
        max_output_boxes_per_class=5,
    )
    assert found.tolist() == [[0, 0, 2], [0, 0, 0]]
