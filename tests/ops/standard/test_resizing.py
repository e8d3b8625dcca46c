"""Resampling, compared with PyTorch, and with ONNX's evaluator for all options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.modelling import float32, model_of
from tests.ops.oracle import functional, of_onnx, torch

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Array, Builder, ElementType, ModelError, TensorType
from crosschip.ops import Operator
from crosschip.ops.numerics.resampling import AlignMode, Rounding
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

IMAGE = (2, 3, 5, 7)

ROUNDINGS = {
    Rounding.DOWN_AT_HALF: "round_prefer_floor",
    Rounding.UP_AT_HALF: "round_prefer_ceil",
    Rounding.DOWN: "floor",
    Rounding.UP: "ceil",
}
ALIGN_MODES = {
    AlignMode.HALF_PIXEL: "half_pixel",
    AlignMode.ASYMMETRIC: "asymmetric",
    AlignMode.PYTORCH_HALF_PIXEL: "pytorch_half_pixel",
    AlignMode.SYMMETRIC_HALF_PIXEL: "half_pixel_symmetric",
}
NO_REGION = np.zeros(0, np.float32)


def resize(scales: Any, size: Any, mode: str, places: str, roi: Array, **attributes: Any) -> Any:
    """Return ONNX's Resize of height and width."""
    compute = of_onnx("Resize", mode=mode, coordinate_transformation_mode=places, **attributes)
    factors = np.array([] if scales is None else [1, 1, *scales], np.float32)
    sizes = [] if size is None else [np.array([*IMAGE[:2], *size])]
    return lambda x: compute(x, roi, factors, *sizes)


TARGETS: list[dict[str, Any]] = [
    {"shape": (8, 4)},
    {"shape": (1, 21)},
    {"scales": (0.87, 1.76)},
    {"scales": (2.0, 3.0)},
    {"scales": (0.43, 0.37)},
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("align_mode", ALIGN_MODES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_nearest(
    check: Checker, target: dict[str, Any], align_mode: AlignMode, rounding: Rounding
) -> None:
    check(
        lambda b, x: b.add(ResizeNearest, x, align_mode=align_mode, rounding=rounding, **target),
        resize(
            *(target.get("scales"), target.get("shape"), "nearest", ALIGN_MODES[align_mode]),
            NO_REGION,
            nearest_mode=ROUNDINGS[rounding],
        ),
        IMAGE,
    )


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("align_mode", ALIGN_MODES)
@pytest.mark.parametrize("operator", [ResizeLinear, ResizeCubic])
@pytest.mark.parametrize("setting", ["", "antialias", "exclude_outside"])
def test_interpolation(
    check: Checker,
    target: dict[str, Any],
    align_mode: AlignMode,
    operator: type[Operator],
    setting: str,
) -> None:
    if align_mode is AlignMode.PYTORCH_HALF_PIXEL and target.get("shape") == (1, 21):
        target = {"shape": (2, 21)}  # for one row, ONNX's text says 0, its evaluator -0.5
    given = {setting: True} if setting else {}
    check(
        lambda b, x: b.add(operator, x, align_mode=align_mode, **target, **given),
        resize(
            *(target.get("scales"), target.get("shape")),
            "linear" if operator is ResizeLinear else "cubic",
            ALIGN_MODES[align_mode],
            NO_REGION,
            **{name: int(value) for name, value in given.items()},
        ),
        IMAGE,
    )


@pytest.mark.parametrize("size", [(3, 4), (9, 1)], ids=str)
@pytest.mark.parametrize("operator", [ResizeNearest, ResizeLinear, ResizeCubic])
def test_cropping(check: Checker, size: tuple[int, int], operator: type[Operator]) -> None:
    roi = (0.2, -0.3, 0.7, 1.1)
    modes: dict[type[Operator], str] = {
        ResizeNearest: "nearest",
        ResizeLinear: "linear",
        ResizeCubic: "cubic",
    }
    mode = modes[operator]
    given = {"rounding": Rounding.DOWN_AT_HALF} if operator is ResizeNearest else {}
    whole = np.array([0, 0, *roi[:2], 1, 1, *roi[2:]], np.float32)
    # Where one pixel is left, the evaluator takes the middle of the region's size for its place.
    oracle = resize(
        *(None, size, mode, "tf_crop_and_resize", whole), extrapolation_value=9.0
    ) if size[1] > 1 else cropped_by_hand(mode)  # fmt: skip
    check(
        lambda b, x: b.add(
            operator,
            *(x, size),
            align_mode=AlignMode.CROP,
            roi=roi,
            extrapolation_value=9.0,
            **given,
        ),
        oracle,
        IMAGE,
    )


def cropped_by_hand(mode: str) -> Any:
    """The crop has rows 0.8 to 2.8 of column 2.4 of a 5 by 7 image, in 9 steps."""

    def call(x: Array) -> Array:
        rows = np.linspace(0.8, 2.8, 9)
        if mode == "nearest":
            return np.asarray(x[:, :, np.rint(rows).astype(int)][..., [2]])
        weigh = {"linear": tent, "cubic": keys}[mode]
        down = np.array([[weigh(pixel - row) for pixel in range(-2, 7)] for row in rows])
        across = np.array([[weigh(pixel - 2.4)] for pixel in range(-2, 9)])
        framed = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), mode="edge")
        return np.asarray(down @ framed @ across, np.float32)

    return call


def tent(distance: float) -> float:
    return max(0.0, 1 - abs(distance))


def keys(distance: float, a: float = -0.75) -> float:
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def test_corners_before_the_size_is_rounded(check: Checker) -> None:
    scales = (0.7, 1.6)
    check(
        lambda b, x: b.add(ResizeLinear, x, scales=scales, align_mode=AlignMode.SCALED_CORNERS),
        resize(scales, None, "linear", "align_corners", NO_REGION),
        IMAGE,
    )


def test_integers_are_moved(check: Checker) -> None:
    values = np.arange(-6, 6, dtype=np.int32).reshape(1, 1, 3, 4)
    check(
        lambda b, x: b.add(ResizeNearest, x, scales=(2.0, 0.5)),
        lambda x: x[:, :, [0, 0, 1, 1, 2, 2]][..., [0, 2]],
        values,
    )


def test_no_pixels() -> None:
    b = Builder()
    empty = b.input("x", TensorType(ElementType.FLOAT32, (1, 2, 0, 4)))
    with pytest.raises(ModelError, match=r"RESIZE_LINEAR.input: an image of 0 by 4 has no pixels"):
        b.add(ResizeLinear, empty, (2, 2))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "shape: either it or scales must be given"),
        ({"shape": (2, -2)}, r"shape: \[2, -2\] has a negative size"),
        ({"shape": (2, 2, 2)}, "shape: takes 2 values, not 3"),
        ({"scales": (0.0, 1.0)}, "scales: 0.0 is no factor"),
        ({"scales": (1e30, 1.0)}, "is no factor for a size of 5"),
        ({"shape": (2, 2), "align_mode": 5}, "roi: must be given with align_mode CROP"),
        ({"shape": (2, 2), "align_mode": 9}, "align_mode: 9 is not a valid"),
    ],
)
def test_refused(settings: dict[str, Any], why: str) -> None:
    b = Builder()
    image = b.input("x", TensorType(ElementType.FLOAT32, IMAGE))
    for operator in (ResizeNearest, ResizeLinear, ResizeCubic):
        with pytest.raises(ModelError, match=why):
            b.add(operator, image, **settings)


SIZES = [(5, 7), (10, 14), (3, 4), (1, 1), (13, 5), (15, 21), (41, 47)]


SCALES = [(2.0, 2.0), (4.0, 0.5), (3.0, 1.0), (1.5, 0.7), (0.3, 2.6), (41.0, 47.0)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_resizing_to_a_size(check: Checker, size: tuple[int, int]) -> None:
    def like(**how: Any) -> Any:
        return lambda x: functional.interpolate(torch.from_numpy(x), size, **how)

    image = (1, 2, 5, 7)
    check(lambda b, x: b.add(ResizeNearest, x, size), like(mode="nearest"), image)
    for corners in (False, True):
        check(
            lambda b, x, corners=corners: b.add(ResizeLinear, x, size, align_corners=corners),
            like(mode="bilinear", align_corners=corners),
            image,
        )


@pytest.mark.parametrize("scales", SCALES, ids=str)
def test_resizing_by_scales(check: Checker, scales: tuple[float, float]) -> None:
    exact = tuple(float(np.float32(scale)) for scale in scales)

    def like(**how: Any) -> Any:
        return lambda x: functional.interpolate(
            torch.from_numpy(x), scale_factor=exact, recompute_scale_factor=False, **how
        )

    image = (1, 1, 4, 3)
    check(lambda b, x: b.add(ResizeNearest, x, scales=scales), like(mode="nearest"), image)
    check(lambda b, x: b.add(ResizeLinear, x, scales=scales), like(mode="bilinear"), image)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
def test_cubic_resizing(check: Checker, size: tuple[int, int], align_corners: bool) -> None:
    check(
        lambda b, x: b.add(ResizeCubic, x, size, align_corners=align_corners),
        lambda x: functional.interpolate(
            torch.from_numpy(x), size, mode="bicubic", align_corners=align_corners
        ),
        (2, 3, 5, 7),
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resizing_without_aliases(check: Checker, size: tuple[int, int], mode: str) -> None:
    """PyTorch excludes pixels outside the image, and uses Keys' coefficient."""
    operator = {"bilinear": ResizeLinear, "bicubic": ResizeCubic}[mode]
    given = {"coefficient": -0.5} if operator is ResizeCubic else {}
    check(
        lambda b, x: b.add(operator, x, size, antialias=True, exclude_outside=True, **given),
        lambda x: functional.interpolate(torch.from_numpy(x), size, mode=mode, antialias=True),
        (2, 3, 5, 7),
    )


def interpolated(image: Array, places: Array, axis: int) -> Array:
    """Return the image at fractional coordinates of an axis."""
    pixels = np.arange(image.shape[axis])
    return np.apply_along_axis(lambda line: np.interp(places, pixels, line), axis, image)


def test_asymmetric_resizing(check: Checker) -> None:
    for size in ((10, 14), (3, 4), (13, 5)):
        rows, columns = np.arange(size[0]) * 5 / size[0], np.arange(size[1]) * 7 / size[1]
        check(
            lambda b, x, size=size: b.add(ResizeLinear, x, size, align_mode=AlignMode.ASYMMETRIC),
            lambda x, rows=rows, columns=columns: interpolated(
                interpolated(x, rows, 2), columns, 3
            ).astype(np.float32),
            (2, 3, 5, 7),
        )


def test_nearest_with_aligned_corners(check: Checker) -> None:
    for size, rows, columns in (
        ((5, 7), [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]),
        ((9, 3), [0, 1, 1, 2, 2, 3, 3, 4, 4], [0, 3, 6]),
        ((1, 2), [0], [0, 6]),
    ):
        check(
            lambda b, x, size=size: b.add(ResizeNearest, x, size, align_corners=True),
            lambda x, rows=rows, columns=columns: x[:, :, rows][..., columns],
            (2, 3, 5, 7),
        )


@pytest.mark.parametrize("operator", [ResizeLinear, ResizeCubic])
def test_a_scale_that_leaves_nothing(operator: type[Operator]) -> None:
    image = np.ones((1, 1, 4, 6), np.float32)
    model = model_of(
        lambda b, x: b.add(operator, x, scales=(1e-30, 1.5), antialias=True), float32(1, 1, 4, 6)
    )
    (made,) = ReferenceProgram(model).run([image])
    assert made.shape == (1, 1, 0, 9)
