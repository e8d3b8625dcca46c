"""Sampling of images by a grid and in regions on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    BOXES,
    SQUARE,
    adds,
    agree,
    assert_refused,
    integers,
    overlapping_boxes,
)

from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

BORDERS = [PadMode.CONSTANT, PadMode.REFLECT, PadMode.EDGE]


@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_sample(check: Checker, kernel: Kernel, border: PadMode, align_corners: bool) -> None:
    grid = np.random.default_rng(33).uniform(-2.5, 2.5, (2, 4, 3, 2)).astype(np.float32)
    check(
        lambda b, x, y: b.add(GridSample, x, y, align_corners, kernel, border), (2, 3, 5, 6), grid
    )


@pytest.mark.parametrize("ratio", [-1, 1, 3])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(check: Checker, ratio: int, aligned: bool) -> None:
    for dtype in (np.int32, np.int64):
        check(
            lambda b, *xs: b.add(RoiAlign, *xs, 3, 2, ratio, 0.6, aligned),
            *((2, 3, 9, 8), overlapping_boxes(5) - 2, np.array([0, 1, 1, 0, 1], dtype)),
            symbolic_too=check.device.name == "onnxruntime",
        )


def test_greatest_sample(check: Checker) -> None:
    inputs: Any = (2, 3, 9, 8), overlapping_boxes(2), np.array([0, 1])
    if check.device.name == "openvino":
        check.declines(
            lambda b, *xs: b.add(RoiAlign, *xs, 3, 2, 2, mode=RoiMode.MAX), *inputs, why="mode: MAX"
        )
    else:
        check(lambda b, *xs: b.add(RoiAlign, *xs, 3, 2, 2, mode=RoiMode.MAX), *inputs)


@pytest.mark.parametrize("ratio", [0, 2])
def test_regions_without_extent(check: Checker, ratio: int) -> None:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    build = adds("ROI_ALIGN", np.zeros(3, np.int32), 2, 2, ratio, aligned=True)
    agree(check, build, [image, BOXES], check.static)
    upwards = np.array([[0, 0, 1, -1.5]], np.float32)
    build = adds("ROI_ALIGN", np.zeros(1, np.int32), 1, 1, ratio, aligned=True)
    agree(check, build, [image, upwards], check.static)


@pytest.mark.parametrize("index", [-1, 1])
@pytest.mark.parametrize("typing", ["static", "symbolic"])
def test_regions_of_images_that_there_are_not(check: Checker, index: int, typing: str) -> None:
    arrays = [SQUARE, BOXES, integers(0, 0, index).astype(np.int32)]
    build = adds("ROI_ALIGN", 1, 1)
    if typing == "static":
        assert_refused(check, build, arrays, check.static)
    assert_refused(check, lambda b, x, r: build(b, x, r, arrays[2]), arrays[:2], check.static)
