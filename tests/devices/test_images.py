"""Convolution, pooling and resampling of images on the engines."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.devices.reference import ReferenceDevice
from crosschip.ir import Array, ElementType
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.pooling import AdaptiveAveragePool2D, AveragePool2D, MaxPool2D
from crosschip.ops.standard.resizing import ResizeLinear, ResizeNearest
from crosschip.runtime.compiler import compile

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

WINDOWS: list[dict[str, Any]] = [
    {},
    {"strides": (2, 2)},
    {"strides": (2, 1), "pads": (1, 0, 0, 1)},
    {"pads": (1, 1, 1, 1)},
    {"auto_pad": AutoPad.SAME},
    {"auto_pad": AutoPad.SAME, "strides": (2, 3)},
    {"auto_pad": AutoPad.VALID, "pads": (1, 1, 1, 1), "strides": (2, 2)},
]


def weights(*shape: int) -> Array:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_convolution(check: Checker, window: dict[str, Any]) -> None:
    def conv(b: Any, *operands: Any, **more: Any) -> Any:
        return b.add(Conv2D, *operands, **window, **more)

    check(lambda b, x: conv(b, x, weights(6, 4, 3, 3)), (2, 4, 8, 9))
    check(lambda b, x: conv(b, x, weights(6, 4, 3, 2), weights(6)), (2, 4, 8, 9))
    check(lambda b, x: conv(b, x, weights(6, 2, 3, 3), weights(6), group=2), (2, 4, 8, 9))
    check(lambda b, x: conv(b, x, weights(4, 1, 3, 3), group=4), (2, 4, 8, 9))
    if check.device.name == "openvino" or window.get("auto_pad") is not AutoPad.SAME:
        check(lambda b, x: conv(b, x, weights(6, 4, 3, 3), dilations=(2, 1)), (2, 4, 8, 9))
    # With windows that leave pixels out, ONNX Runtime pads `SAME` by less than nothing.
    skips = window.get("auto_pad") is AutoPad.SAME and max(window.get("strides", (1, 1))) > 2
    check(
        lambda b, x: conv(b, x, weights(6, 4, 1, 1), weights(6)),
        (2, 4, 8, 9),
        symbolic_too=not skips or check.device.name == "openvino",
        rankless_too=not skips or check.device.name == "openvino",
    )


def test_convolution_with_computed_weights(check: Checker) -> None:
    shapes = (2, 4, 8, 9), (6, 2, 3, 3), (6,)
    check(
        lambda b, *xs: b.add(Conv2D, *xs, group=2),
        *shapes,
        symbolic_too=check.device.name == "onnxruntime",
    )
    check(
        lambda b, *xs: b.add(Conv2D, *xs),
        *((2, 4, 8, 9), (6, 4, 3, 3), (6,)),
        symbolic_too=check.device.name == "onnxruntime",
    )
    shapes = (2, 4, 5, 6), (4, 3, 3, 3), (6,)
    check(
        lambda b, *xs: b.add(Conv2DTranspose, *xs, group=2),
        *shapes,
        symbolic_too=check.device.name == "onnxruntime",
    )


@pytest.mark.parametrize(
    "window", [w for w in WINDOWS if w.get("auto_pad") is not AutoPad.SAME], ids=str
)
def test_transposed_convolution(check: Checker, window: dict[str, Any]) -> None:
    def conv(b: Any, *operands: Any, **more: Any) -> Any:
        return b.add(Conv2DTranspose, *operands, **window, **more)

    check(lambda b, x: conv(b, x, weights(4, 6, 3, 3)), (2, 4, 5, 6))
    check(lambda b, x: conv(b, x, weights(4, 6, 3, 3), weights(6)), (2, 4, 5, 6))
    check(lambda b, x: conv(b, x, weights(4, 3, 3, 4), weights(6), group=2), (2, 4, 5, 6))
    check(lambda b, x: conv(b, x, weights(4, 1, 3, 3), group=4), (2, 4, 5, 6))
    check(lambda b, x: conv(b, x, weights(4, 6, 3, 3), dilations=(1, 2)), (2, 4, 5, 6))
    check(lambda b, x: conv(b, x, weights(4, 6, 2, 2)), (2, 4, 5, 6))
    if "strides" in window:
        padded = {"output_padding": (1, 0)}
        check(lambda b, x: conv(b, x, weights(4, 6, 3, 3), **padded), (2, 4, 5, 6))


def test_transposed_convolution_to_a_given_size_is_declined(check: Checker) -> None:
    for given in ({"output_shape": (7, 8)}, {"auto_pad": AutoPad.SAME}):
        check.declines(
            lambda b, x, given=given: b.add(Conv2DTranspose, x, weights(4, 6, 3, 3), **given),
            (2, 4, 5, 6),
            why=f"CONV_2D_TRANSPOSE.{next(iter(given))}",
        )


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("kernel", [(3, 3), (2, 3)], ids=str)
def test_pooling(
    check: Checker, kernel: tuple[int, int], window: dict[str, Any], ceil_mode: bool
) -> None:
    given = {"kernel_shape": kernel, "ceil_mode": ceil_mode, **window}
    image = np.random.default_rng(6).normal(size=(2, 3, 8, 9)).astype(np.float32) - 3
    if ceil_mode and kernel[1] - window.get("strides", (1, 1))[1] < window.get("pads", [0])[-1]:
        check.declines(lambda b, x: b.add(MaxPool2D, x, **given), image, why="ceil_mode")
        check.declines(lambda b, x: b.add(AveragePool2D, x, **given), image, why="ceil_mode")
        return
    openvino = check.device.name == "openvino"
    check(lambda b, x: b.add(MaxPool2D, x, **given), image)
    check(lambda b, x: b.add(AveragePool2D, x, **given), image)
    if openvino and ceil_mode:
        check.declines(
            lambda b, x: b.add(AveragePool2D, x, count_include_pad=True, **given),
            image,
            why="count_include_pad",
        )
    else:
        check(lambda b, x: b.add(AveragePool2D, x, count_include_pad=True, **given), image)
    symbolic_too = not (openvino and window.get("auto_pad") is AutoPad.SAME)
    for dtype in (ElementType.INT32, ElementType.INT64):
        both = {"return_indices": True, "return_indices_dtype": dtype, **given}
        check(
            lambda b, x, both=both: b.add_all(MaxPool2D, x, **both),
            image,
            symbolic_too=symbolic_too,
        )


def test_indices_of_equal_maxima(check: Checker) -> None:
    image = np.random.default_rng(7).integers(0, 2, (2, 3, 6, 6)).astype(np.float32)
    for strides in ((1, 1), (2, 2)):
        check(
            lambda b, x, s=strides: b.add_all(
                MaxPool2D, x, kernel_shape=(2, 2), strides=s, return_indices=True
            ),
            image,
        )


def test_adaptive_pooling(check: Checker) -> None:
    check(lambda b, x: b.add(AdaptiveAveragePool2D, x, (1, 1)), (2, 3, 5, 7))
    if check.device.name == "openvino":
        check(lambda b, x: b.add(AdaptiveAveragePool2D, x, (2, 3)), (2, 3, 5, 7))
        check(lambda b, x: b.add(AdaptiveAveragePool2D, x, (3, 7)), (2, 3, 5, 7))
    else:
        check.declines(
            lambda b, x: b.add(AdaptiveAveragePool2D, x, (2, 3)), (2, 3, 5, 7), why="must be [1, 1]"
        )


SIZES = [(5, 7), (10, 14), (20, 28), (3, 4), (1, 1), (5, 3), (15, 21), (82, 94), (6, 8)]


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


SCALES = [(2.0, 2.0), (4.0, 0.5), (3.0, 1.0), (1.5, 0.7), (0.3, 2.6), (41.0, 47.0)]


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
    """Sizes at which dividing by a scale and multiplying by its inverse name different pixels."""
    for size, new in product((2, 7, 10, 23, 94), (82, 94, 110, 218)):
        row = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
        check(lambda b, x, new=new: b.add(ResizeNearest, x, (1, new)), row, rankless_too=False)


def test_an_activation_leaves_indices_alone(check: Checker) -> None:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)

    def pooled(b: Any, x: Any) -> Any:
        pool = {"kernel_shape": (2, 2), "strides": (2, 2), "return_indices": True}
        return b.add_all(MaxPool2D, x, **pool, fuse_code=Fuse.RELU6)

    model = check.built(pooled, [image])
    for device in (check.device, ReferenceDevice()):
        with compile(model, [device], cache=False) as compiled:
            values, indices = compiled.run({"input 0": image}).values()
        np.testing.assert_array_equal(values.ravel(), [5, 6, 6, 6])
        np.testing.assert_array_equal(indices.ravel(), [5, 7, 13, 15])
