"""Non-maximum suppression on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import BOXES, adds, agree, overlapping_boxes, tied_scores, zeros

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ops import operator_named
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

if TYPE_CHECKING:
    from tests.devices.conftest import Checker


@pytest.mark.parametrize("most", [0, 2, 50])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("overlap", "score"), [(0.1, 0.0), (0.5, 0.3)])
def test_indices(check: Checker, most: int, center: bool, overlap: float, score: float) -> None:
    check(
        lambda b, *xs: b.add(NonMaxSuppressionIndices, *xs, most, overlap, score, center),
        *(overlapping_boxes(2, 20), tied_scores(2, 3, 20)),
        symbolic_too=check.device.name == "onnxruntime",
    )


def test_limits_that_are_computed(check: Checker) -> None:
    limits = np.array([3]), np.array([0.4], np.float32), np.array([0.2], np.float32)
    inputs = overlapping_boxes(2, 20), tied_scores(2, 3, 20), *limits
    if check.device.name == "onnxruntime":
        check(lambda b, *xs: b.add(NonMaxSuppressionIndices, *xs), *inputs)
    else:
        check.declines(
            lambda b, *xs: b.add(NonMaxSuppressionIndices, *xs), *inputs, why="computed at run time"
        )


@pytest.mark.parametrize(
    "settings",
    [
        {"background_label": -1, "nms_top_k": 9, "keep_top_k": 11},
        {"score_threshold": 0.3, "nms_threshold": 0.7, "nms_eta": 0.8},
    ],
    ids=str,
)
def test_suppression(check: Checker, settings: dict[str, Any]) -> None:
    inputs = overlapping_boxes(2, 20), tied_scores(2, 3, 20)
    if check.device.name == "openvino":
        check(lambda b, *xs: b.add_all(NonMaxSuppression, *xs, return_index=True, **settings),
              *inputs, symbolic_too=False)  # fmt: skip
        for more, why in (
            ({"normalized": False}, "normalized"),
            ({"nms_top_k": 0}, "nms_top_k: 0"),
            ({"nms_threshold": 0.5, "nms_eta": 0.9}, "nms_threshold: comes to 0.5"),
            ({"nms_threshold": 1.0, "nms_eta": 0.5}, "nms_threshold: comes to 0.5"),
        ):
            check.declines(
                lambda b, *xs, more=more: b.add_all(NonMaxSuppression, *xs, **more),
                *inputs,
                why=why,
            )
    else:
        check.declines(
            lambda b, *xs: b.add_all(NonMaxSuppression, *xs), *inputs, why="not implemented"
        )


@pytest.mark.parametrize("limit", [-1, -2, 1])
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
def test_limits_of_suppression(check: Checker, limit: int, eta: float) -> None:
    scores = np.array([[[0.5, 0.25, 0.75]]], np.float32)
    indices = adds("NON_MAX_SUPPRESSION_INDICES", limit, 0.5)
    agree(check, indices, [BOXES[None], scores], check.static)
    # Corners that are turned inside out are not specified here.
    boxes = np.sort(BOXES.reshape(1, 3, 2, 2), 2).reshape(1, 3, 4)
    build = adds("NON_MAX_SUPPRESSION", nms_top_k=limit, keep_top_k=limit, nms_eta=eta)
    agree(check, build, [boxes, scores], check.static)
    unlabelled = adds("NON_MAX_SUPPRESSION", background_label=limit)
    agree(check, unlabelled, [boxes, scores], check.static)


@pytest.mark.parametrize("threshold", [1.0, 1.5, np.inf])
def test_boxes_that_cannot_overlap_enough(check: Checker, threshold: float) -> None:
    boxes, scores = BOXES[None], np.array([[[0.5, 0.25, 0.75]]], np.float32)
    build = adds("NON_MAX_SUPPRESSION_INDICES", 3)
    agree(check, build, [boxes, scores], check.static)
    limits = np.array(threshold, np.float32)
    agree(
        check,
        lambda b, x, s, t: b.add(operator_named("NON_MAX_SUPPRESSION_INDICES"), x, s, 3, t),
        [boxes, scores, limits],
        check.static,
    )


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_boxes_of_negative_width_do_not_overlap(check: Checker) -> None:
    boxes = np.array([[[0, 0, 27.375, 1], [8.75, 7.4375, -1, 16.5]]], np.float32)
    build = adds("NON_MAX_SUPPRESSION_INDICES", 2, center_point_box=True)
    model = check.built(build, [boxes, zeros(1, 1, 2)])
    for device in (check.device, ReferenceDevice()):
        found = check.outputs_of(device, model, [boxes, zeros(1, 1, 2)])[0]
        np.testing.assert_array_equal(found, [[0, 0, 0], [0, 0, 1]])
    assert check.device.supports(model.operations[0], Options())
