"""Detectors' operators and sampling, on each engine against the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.ir import Array
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.numerics.resampling import AlignMode, Rounding
from crosschip.ops.standard.convolution import Conv2DTranspose, DeformableConv2D
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

BORDERS = [PadMode.CONSTANT, PadMode.REFLECT, PadMode.EDGE]


def boxes(*shape: int) -> Array:
    """Boxes many of which overlap."""
    random = np.random.default_rng(31)
    corners, sides = random.uniform(0, 20, (*shape, 2)), random.uniform(1, 15, (*shape, 2))
    return np.concatenate([corners, corners + sides], axis=-1).astype(np.float32)


def scores(*shape: int) -> Array:
    """Scores many of which are equal."""
    return np.random.default_rng(32).uniform(0, 1, shape).round(1).astype(np.float32)


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
            *((2, 3, 9, 8), boxes(5) - 2, np.array([0, 1, 1, 0, 1], dtype)),
            symbolic_too=check.device.name == "onnxruntime",
        )


def test_greatest_sample(check: Checker) -> None:
    inputs: Any = (2, 3, 9, 8), boxes(2), np.array([0, 1])
    if check.device.name == "openvino":
        check.declines(
            lambda b, *xs: b.add(RoiAlign, *xs, 3, 2, 2, mode=RoiMode.MAX), *inputs, why="mode: MAX"
        )
    else:
        check(lambda b, *xs: b.add(RoiAlign, *xs, 3, 2, 2, mode=RoiMode.MAX), *inputs)


@pytest.mark.parametrize("most", [0, 2, 50])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("overlap", "score"), [(0.1, 0.0), (0.5, 0.3)])
def test_indices(check: Checker, most: int, center: bool, overlap: float, score: float) -> None:
    check(
        lambda b, *xs: b.add(NonMaxSuppressionIndices, *xs, most, overlap, score, center),
        *(boxes(2, 20), scores(2, 3, 20)),
        symbolic_too=check.device.name == "onnxruntime",
    )


def test_limits_that_are_computed(check: Checker) -> None:
    limits = np.array([3]), np.array([0.4], np.float32), np.array([0.2], np.float32)
    inputs = boxes(2, 20), scores(2, 3, 20), *limits
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
    inputs = boxes(2, 20), scores(2, 3, 20)
    if check.device.name == "openvino":
        check(lambda b, *xs: b.add_all(NonMaxSuppression, *xs, return_index=True, **settings),
              *inputs, symbolic_too=False)  # fmt: skip
        for more, why in (
            ({"normalized": False}, "normalized"),
            ({"nms_top_k": 0}, "nms_top_k: 0"),
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


@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolution(check: Checker, masked: bool) -> None:
    random = np.random.default_rng(34)
    offset = random.normal(scale=2, size=(2, 16, 4, 3)).astype(np.float32)
    mask = random.uniform(size=(2, 8, 4, 3)).astype(np.float32)
    filters = random.normal(size=(6, 2, 2, 2)).astype(np.float32)
    given: dict[str, Any] = {
        "strides": (1, 2), "pads": (0, 1, 1, 1), "dilations": (2, 1), "group": 2,
        "deformable_group": 2,
    }  # fmt: skip
    check(
        lambda b, x, y, z: b.add(DeformableConv2D, x, y, z if masked else None, filters, **given),
        *((2, 4, 5, 5), offset, mask),
    )


@pytest.mark.parametrize("size", [(3, 9), (11, 2)], ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
def test_cubic(check: Checker, size: tuple[int, int], align_corners: bool) -> None:
    for mode in (AlignMode.HALF_PIXEL, AlignMode.ASYMMETRIC):
        given = {"align_corners": align_corners, "align_mode": mode, "coefficient": -0.6}
        check(lambda b, x, given=given: b.add(ResizeCubic, x, size, **given), (2, 3, 5, 7))


def test_resampling_that_engines_do_otherwise(check: Checker) -> None:
    image = (1, 2, 5, 3)
    for build, why in (
        (lambda b, x: b.add(ResizeLinear, x, (3, 2), antialias=True), "antialias"),
        (lambda b, x: b.add(ResizeCubic, x, (3, 2), align_mode=AlignMode(3)), "align_mode"),
        (lambda b, x: b.add(ResizeNearest, x, (3, 2), rounding=Rounding.UP), "rounding"),
        (lambda b, x: b.add(ResizeNearest, x, (3, 2), align_mode=AlignMode(0)), "align_mode"),
    ):
        check.declines(build, image, why=why)
    if check.device.name == "openvino":
        for build, why in (
            (lambda b, x: b.add(ResizeLinear, x, scales=(1.3, 1.3)), "leave a size of 3"),
            (lambda b, x: b.add(ResizeNearest, x, scales=(0.1, 2.3)), "no pixels"),
            (lambda b, x: b.add(ResizeCubic, x, (3, 2), exclude_outside=True), "exclude_outside"),
        ):
            check.declines(build, image, why=why)


def test_windows_that_engines_lay_otherwise(check: Checker) -> None:
    apart: dict[str, Any] = {
        "kernel_shape": (2, 1), "strides": (1, 3), "auto_pad": AutoPad.SAME,
        "return_indices": True,
    }  # fmt: skip
    given: dict[str, Any] = {"strides": (2, 2), "output_padding": (2, 0)}
    filters = np.ones((4, 3, 3, 3), np.float32)
    if check.device.name == "onnxruntime":
        check.declines(lambda b, x: b.add_all(MaxPool2D, x, **apart), (2, 4, 8, 6), why="auto_pad")
        check.declines(
            lambda b, x: b.add(Conv2DTranspose, x, filters, **given), (2, 4, 5, 6), why="output_pad"
        )
    else:
        check(lambda b, x: b.add_all(MaxPool2D, x, **apart), (2, 4, 8, 6), symbolic_too=False)
        check(lambda b, x: b.add(Conv2DTranspose, x, filters, **given), (2, 4, 5, 6))


@pytest.mark.parametrize("strides", [(2, 2), (3, 1)], ids=str)
def test_windows_of_onnx(check: Checker, strides: tuple[int, int]) -> None:
    """Rounded up, but with no window that starts in the padding; dilated; padded at the top."""
    for settings in (
        {"pads": (1, 1, 1, 1), "ceil_mode": True, "inside": True},
        {"dilations": (2, 2)},
        {"auto_pad": AutoPad.SAME_LOWER},
    ):
        check(
            lambda b, x, settings=settings: b.add(
                MaxPool2D, x, kernel_shape=(3, 2), strides=strides, **settings
            ),
            (2, 3, 8, 9),
        )
