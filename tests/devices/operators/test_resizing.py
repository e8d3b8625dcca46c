"""Resampling of images on the engines."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import SQUARE, Example, adds, agree, assert_refused, claimed_example

from crosschip.ir import Builder, ElementType
from crosschip.ops import operator_named
from crosschip.ops.numerics.resampling import AlignMode, Rounding
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

IMAGE = (1, 2, 6, 5)
SIZES = [(5, 7), (10, 14), (20, 28), (3, 4), (1, 1), (5, 3), (15, 21), (82, 94), (6, 8)]
SCALES = [(2.0, 2.0), (4.0, 0.5), (3.0, 1.0), (1.5, 0.7), (0.3, 2.6), (41.0, 47.0)]
CLAIMS: dict[str, Example] = {
    "RESIZE_NEAREST": (lambda b, x: b.add(ResizeNearest, x, scales=(2.0, 2.0)), (IMAGE,)),
    "RESIZE_NEAREST gathered": (lambda b, x: b.add(ResizeNearest, x, (7, 7)), (IMAGE,)),
    "RESIZE_LINEAR": (lambda b, x: b.add(ResizeLinear, x, (9, 7)), (IMAGE,)),
}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
def test_resizing_to_a_size(check: Checker, size: tuple[int, int], align_corners: bool) -> None:
    image, computed = (2, 3, 5, 7), np.array(size, np.int64)
    for dtype in (np.int32, np.int64):
        computed = computed.astype(dtype)
        check(
            lambda b, x, y: b.add(ResizeNearest, x, y, align_corners=align_corners),
            *(image, computed),
            symbolic_too=False,
            rankless_too=False,
        )
    for mode in (AlignMode.HALF_PIXEL, AlignMode.ASYMMETRIC):
        check(
            lambda b, x, mode=mode: b.add(
                ResizeLinear, x, size, align_corners=align_corners, align_mode=mode
            ),
            image,
        )
    check(lambda b, x: b.add(ResizeNearest, x, size, align_corners=align_corners), image)


@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
def test_resizing_by_scales(
    check: Checker, scales: tuple[float, float], align_corners: bool
) -> None:
    given = {"scales": scales, "align_corners": align_corners}
    check(lambda b, x: b.add(ResizeNearest, x, **given), (2, 3, 5, 10))
    for mode in (AlignMode.HALF_PIXEL, AlignMode.ASYMMETRIC):
        check(lambda b, x, m=mode: b.add(ResizeLinear, x, align_mode=m, **given), (2, 3, 5, 10))


def test_nearest_pixels_are_those_of_the_definition(check: Checker) -> None:
    """Dividing by a scale and multiplying by its inverse give different pixels."""
    for size, new in product((2, 7, 10, 23, 94), (82, 94, 110, 218)):
        row = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
        check(lambda b, x, new=new: b.add(ResizeNearest, x, (1, new)), row, rankless_too=False)


@pytest.mark.parametrize("size", [(3, 9), (11, 2)], ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
def test_cubic(check: Checker, size: tuple[int, int], align_corners: bool) -> None:
    for mode in (AlignMode.HALF_PIXEL, AlignMode.ASYMMETRIC):
        given = {"align_corners": align_corners, "align_mode": mode, "coefficient": -0.6}
        check(lambda b, x, given=given: b.add(ResizeCubic, x, size, **given), (2, 3, 5, 7))


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, CLAIMS[name])


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


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_scales_that_are_computed(check: Checker) -> None:
    """They may keep a size (quirk `scale-that-keeps-size`)."""

    def build(b: Builder, x: Any, scales: Any, name: str = "RESIZE_NEAREST") -> Any:
        return b.add(operator_named(name), x, scales=scales)

    for name in ("RESIZE_LINEAR", "RESIZE_CUBIC"):
        check.declines(
            lambda b, x, scales, n=name: build(b, x, scales, n),
            *(SQUARE, np.array([0.6, 1.3], np.float32)),
            why="scales: is computed",
        )
    for wrong in (0, -1, np.nan):
        assert_refused(check, build, [SQUARE, np.array([1, wrong], np.float32)], check.static)
    agree(check, build, [SQUARE, np.array([2, 0.5], np.float32)], check.static)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_images_of_no_pixels(check: Checker) -> None:
    build = adds("RESIZE_LINEAR", shape=(0, 0))
    check.declines(build, (1, 1, 2, 2), why="shape: the image has no")
