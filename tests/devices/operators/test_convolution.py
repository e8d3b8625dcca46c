"""Convolutions on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import WINDOWS, Example, adds, agree, claimed_example, values_like

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, ElementType
from crosschip.ops import operator_named
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.deformable import DeformableConv2D

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

IMAGE = (1, 2, 6, 5)
CLAIMS: dict[str, Example] = {
    "CONV_2D": (
        lambda b, x: b.add(Conv2D, x, values_like(x, 3, 2, 3, 3), values_like(x, 3)),
        (IMAGE,),
    ),
    "CONV_2D_TRANSPOSE": (
        lambda b, x: b.add(Conv2DTranspose, x, values_like(x, 2, 3, 3, 3), values_like(x, 3)),
        (IMAGE,),
    ),
}


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


def test_sizes_that_several_outputs_have(check: Checker) -> None:
    given: dict[str, Any] = {"strides": (2, 2), "output_padding": (2, 0)}
    filters = np.ones((4, 3, 3, 3), np.float32)
    if check.device.name == "onnxruntime":
        check.declines(
            lambda b, x: b.add(Conv2DTranspose, x, filters, **given), (2, 4, 5, 6), why="output_pad"
        )
    else:
        check(lambda b, x: b.add(Conv2DTranspose, x, filters, **given), (2, 4, 5, 6))


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_padding_of_the_output_of_a_transposed_convolution(check: Checker, padding: int) -> None:
    """ONNX Runtime requires it to be less than the stride, whatever the dilation."""
    filters = np.ones((1, 1, 2, 2), np.float32)
    for stride, dilation in ((1, 3), (2, 1), (2, 3), (3, 1)):
        build = adds(
            "CONV_2D_TRANSPOSE",
            filters,
            strides=[stride, stride],
            dilations=[dilation, dilation],
            output_padding=[padding, 0],
        )
        agree(check, build, [np.ones((1, 1, 2, 2), np.float32)], check.static)


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


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, CLAIMS[name])


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("stride", [2, 3, 5])
@pytest.mark.parametrize("typing", ["static", "symbolic"])
def test_one_channel_and_one_column(
    check: Checker, channels: int, stride: int, typing: str
) -> None:
    random = np.random.default_rng(0)
    for width in (3, 4, 2 + stride):
        image = random.normal(size=(2, channels, 5, width)).astype(np.float32)
        filters = random.normal(size=(3, channels, 3, 3)).astype(np.float32)
        model = check.built(
            adds("CONV_2D", filters, strides=[1, stride]), [image], getattr(check, typing)
        )
        expected = check.outputs_of(ReferenceDevice(), model, [image])
        check.compare(model, [image], expected, 1e-5)


def test_a_convolution_of_constants(check: Checker) -> None:
    """OpenVINO would add the bias again in each run (quirk `constant-convolution`)."""
    ten = np.full((1, 1, 1, 1), 10, np.float32)
    model = check.built(
        lambda b, bias: b.add(operator_named("CONV_2D"), b.constant(ten), b.constant(ten), bias),
        [np.ones(1, np.float32)],
    )
    if check.device.supports(model.operations[0], Options()):
        program = check.device.compile(model, Options())
        for number in (1, 2, 3):
            (made,) = program.run([np.full(1, number, np.float32)])
            np.testing.assert_array_equal(made, [[[[100 + number]]]])


def agree_exactly(check: Checker, build: Build, arrays: list[Array]) -> None:
    model = check.built(build, arrays, check.static)
    expected = check.outputs_of(ReferenceDevice(), model, arrays)
    for made, wanted in zip(check.outputs_of(check.device, model, arrays), expected, strict=True):
        np.testing.assert_array_equal(made.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_bfloat16_convolutions(check: Checker) -> None:
    """In bfloat16, OpenVINO returns NaN beside an infinity, and crashes with narrow padding."""
    bfloat16 = ElementType.BFLOAT16.dtype
    image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3).astype(bfloat16)
    image[0, 0, 1, 1] = -np.inf
    one = np.ones((1, 1, 1, 1), bfloat16)
    agree_exactly(check, adds("CONV_2D"), [image, one])
    narrow = adds("CONV_2D", strides=[1, 2], dilations=[1, 2], pads=[0, 1, 1, 1])
    agree_exactly(check, narrow, [one, one])
