"""Pooling on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    SQUARE,
    WINDOWS,
    Example,
    adds,
    agree,
    assert_refused,
    claimed_example,
)

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import ElementType
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.adaptive_pooling import AdaptiveAveragePool2D
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.runtime.compile.front_door import compile

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

IMAGE = (1, 2, 6, 5)
CLAIMS: dict[str, Example] = {
    "AVERAGE_POOL_2D": (lambda b, x: b.add(AveragePool2D, x, kernel_shape=(2, 3)), (IMAGE,)),
    "MAX_POOL_2D": (lambda b, x: b.add(MaxPool2D, x, kernel_shape=(2, 3)), (IMAGE,)),
    "MAX_POOL_2D indices": (
        lambda b, x: b.add_all(MaxPool2D, x, kernel_shape=(2, 3), return_indices=True),
        (IMAGE,),
    ),
    "ADAPTIVE_AVERAGE_POOL_2D": (lambda b, x: b.add(AdaptiveAveragePool2D, x, (1, 1)), (IMAGE,)),
}


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


def test_adaptive_pooling(check: Checker) -> None:
    check(lambda b, x: b.add(AdaptiveAveragePool2D, x, (1, 1)), (2, 3, 5, 7))
    if check.device.name == "openvino":
        check(lambda b, x: b.add(AdaptiveAveragePool2D, x, (2, 3)), (2, 3, 5, 7))
        check(lambda b, x: b.add(AdaptiveAveragePool2D, x, (3, 7)), (2, 3, 5, 7))
    else:
        check.declines(
            lambda b, x: b.add(AdaptiveAveragePool2D, x, (2, 3)), (2, 3, 5, 7), why="must be [1, 1]"
        )


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, CLAIMS[name])


def test_indices_of_equal_maxima(check: Checker) -> None:
    image = np.random.default_rng(7).integers(0, 2, (2, 3, 6, 6)).astype(np.float32)
    for strides in ((1, 1), (2, 2)):
        check(
            lambda b, x, s=strides: b.add_all(
                MaxPool2D, x, kernel_shape=(2, 2), strides=s, return_indices=True
            ),
            image,
        )


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


def test_windows_that_lie_apart(check: Checker) -> None:
    apart: dict[str, Any] = {
        "kernel_shape": (2, 1), "strides": (1, 3), "auto_pad": AutoPad.SAME,
        "return_indices": True,
    }  # fmt: skip
    if check.device.name == "onnxruntime":
        check.declines(lambda b, x: b.add_all(MaxPool2D, x, **apart), (2, 4, 8, 6), why="auto_pad")
    else:
        check(lambda b, x: b.add_all(MaxPool2D, x, **apart), (2, 4, 8, 6), symbolic_too=False)


@pytest.mark.parametrize("name", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 1, 0, 0)])
def test_windows_larger_than_an_open_image(check: Checker, name: str, pads: Any) -> None:
    build = adds(name, pads=pads, kernel_shape=[3, 3])
    assert_refused(check, build, [SQUARE], check.symbolic)
    for size in (3, 4):
        agree(check, build, [np.ones((2, 1, size, 3), np.float32)], check.symbolic)


def test_the_greatest_of_infinities(check: Checker) -> None:
    image = np.array([[[[-np.inf, 1, np.nan], [np.inf, -np.inf, 2]]]], np.float32)
    build = adds("MAX_POOL_2D", kernel_shape=[1, 2])
    model = check.built(build, [image])
    if check.device.supports(model.operations[0], Options()):
        found = check.outputs_of(check.device, model, [image])[0]
        np.testing.assert_array_equal(found[..., 0].ravel(), [1, np.inf])
