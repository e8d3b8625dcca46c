"""That each node of images computes what the document says, by formulas in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.apis.nnrt.hdi.v1_0 import oracles
from tests.apis.nnrt.hdi.v1_0.checking import (
    I32,
    WITH_NUMBERS,
    Inputs,
    check,
    check_image,
    drawn,
    turned,
)
from tests.apis.nnrt.hdi.v1_0.making import NCHW, NHWC, computed

from crosschip.apis.nnrt.hdi.v1_0.types import (
    ActivationType,
    CoordinateTransformMode,
    NearestMode,
    PadMode,
    QuantParam,
    ResizeMethod,
    RoundMode,
)

CONVOLUTIONS = list(
    itertools.product(PadMode, [(1, 1), (2, 1)], [(1, 1), (1, 2)], [1, 2, 4], ActivationType)
)[::29]


@pytest.mark.parametrize(("mode", "stride", "dilation", "group", "activation"), CONVOLUTIONS)
def test_convolution(
    mode: PadMode,
    stride: tuple[int, int],
    dilation: tuple[int, int],
    group: int,
    activation: ActivationType,
) -> None:
    name = activation.name.removeprefix("ACTIVATION_TYPE_")
    if name in WITH_NUMBERS | {"UNKNOWN"}:
        name, activation = "RELU6", ActivationType.ACTIVATION_TYPE_RELU6
    image, weight, bias = drawn(2, 7, 6, 4), drawn(8, 3, 2, 4 // group), drawn(8, seed=1)
    pads = (1, 0, 2, 1) if mode is PadMode.PAD_MODE_PAD else (0, 0, 0, 0)
    if mode is PadMode.PAD_MODE_SAME:
        spans = (dilation[0] * 2 + 1, dilation[1] + 1)
        both = [
            oracles.same_padding(n, s, t) for n, s, t in zip((7, 6), spans, stride, strict=True)
        ]
        real = (*both[0], *both[1])
    else:
        real = pads
    plain = oracles.conv2d(image, weight, bias, stride, dilation, real, group)
    named = {
        "kernelSize": [3, 2],
        "stride": stride,
        "dilation": dilation,
        "padMode": mode,
        "padList": pads,
        "group": group,
        "inChannel": 4,
        "outChannel": 8,
        "activationType": activation,
    }
    wanted = oracles.ACTIVATIONS[name](plain)
    check_image("CONV2D_FUSION", image, [weight, bias], wanted, tolerance=1e-4, **named)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
@pytest.mark.parametrize(("pads", "more"), [((0, 0, 0, 0), (0, 0)), ((1, 0, 1, 1), (1, 0))])
def test_transposed_convolution(
    group: int, dilation: tuple[int, int], pads: tuple[int, ...], more: tuple[int, int]
) -> None:
    image, weight, bias = drawn(2, 4, 3, 4), drawn(6, 3, 2, 4 // group), drawn(6, seed=1)
    wanted = oracles.conv2d_transpose(image, weight, bias, (2, 2), dilation, pads, group, more)
    named = {
        "kernelSize": [3, 2],
        "stride": [2, 2],
        "dilation": dilation,
        "padList": pads,
        "group": group,
        "outputPaddings": more,
    }
    others = [weight, bias]
    kept = {"constants": {1, 2}, "tolerance": 1e-4}
    check_image("CONV2D_TRANSPOSE_FUSION", image, others, wanted, **kept, **named)


@pytest.mark.parametrize("mode", PadMode)
@pytest.mark.parametrize("rounding", RoundMode)
@pytest.mark.parametrize("kind", ["AVGPOOL_FUSION", "MAX_POOL_FUSION"])
def test_pooling(kind: str, rounding: RoundMode, mode: PadMode) -> None:
    image, kernel, stride = drawn(2, 8, 7, 3), (3, 2), (2, 3)
    pads = (1, 0, 1, 0) if mode is PadMode.PAD_MODE_PAD else (0, 0, 0, 0)
    up = rounding is RoundMode.ROUND_MODE_CEIL and mode is not PadMode.PAD_MODE_SAME
    named: dict[str, Any] = {"roundMode": rounding}
    if kind == "MAX_POOL_FUSION":  # V1_0 has no rounding there
        up, named = False, {}
    real = pads
    if mode is PadMode.PAD_MODE_SAME:
        both = [
            oracles.same_padding(n, s, t) for n, s, t in zip((8, 7), kernel, stride, strict=True)
        ]
        real = (*both[0], *both[1])
    found = oracles.windows(image, kernel, stride, (1, 1), real, fill=np.nan, up=up)
    wanted = (np.nanmean if kind == "AVGPOOL_FUSION" else np.nanmax)(found, axis=(3, 4))
    named |= {"kernelSize": kernel, "strides": stride, "padMode": mode, "pad": pads}
    check_image(kind, image, [], wanted, **named)
    check_image(kind, image, [], np.maximum(wanted, 0), activationType=1, **named)


def test_pooling_of_the_whole_image() -> None:
    image = drawn(2, 5, 4, 3)
    whole = {"global": True}
    check_image("AVGPOOL_FUSION", image, [], image.mean((1, 2), keepdims=True), **whole)
    check_image("MAX_POOL_FUSION", image, [], image.max((1, 2), keepdims=True), **whole)


def test_the_format_attribute_of_pooling_is_not_believed() -> None:
    """NNRt writes NCHW there for every image, which are NHWC."""
    image = drawn(1, 4, 4, 2)
    wanted = oracles.windows(image, (2, 2), (2, 2), (1, 1), (0,) * 4, fill=0).max((3, 4))
    named: dict[str, Any] = {"kernelSize": [2, 2], "strides": [2, 2], "format": NCHW}
    check("MAX_POOL_FUSION", [image], wanted, order=NHWC, **named)


SIZES = [((4, 5), (8, 10)), ((5, 4), (3, 7)), ((3, 4), (1, 2)), ((4, 4), (4, 4))]
MODES = [mode.name.removeprefix("COORDINATE_TRANSFORM_MODE_") for mode in CoordinateTransformMode]
NEAREST = [mode.name.removeprefix("NEAREST_MODE_") for mode in NearestMode]


def resized(method: ResizeMethod, size: Sequence[int], mode: str, **more: Any) -> dict[str, Any]:
    coordinate = CoordinateTransformMode[f"COORDINATE_TRANSFORM_MODE_{mode}"]
    sizes = {"newHeight": size[0], "newWidth": size[1]}
    return {"method": method, "coordinateTransformMode": coordinate, **sizes, **more}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("old", "new"), SIZES)
@pytest.mark.parametrize("exclude", [0, 1])
def test_linear_resize(old: tuple[int, ...], new: tuple[int, ...], mode: str, exclude: int) -> None:
    image = drawn(2, *old, 3)
    wanted = oracles.resize(image, new, oracles.linear, mode, exclude_outside=bool(exclude))
    named = resized(ResizeMethod.RESIZE_METHOD_LINEAR, new, mode, excludeOutside=exclude)
    check_image("RESIZE", image, [], wanted, **named)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nearest", NEAREST)
@pytest.mark.parametrize(("old", "new"), [*SIZES, ((2, 6), (6, 3))])
def test_nearest_resize(
    old: tuple[int, ...], new: tuple[int, ...], mode: str, nearest: str
) -> None:
    image = drawn(2, *old, 3)
    wanted = oracles.resize(image, new, lambda place: {oracles.rounded(place, nearest): 1.0}, mode)
    told = NearestMode[f"NEAREST_MODE_{nearest}"]
    named = resized(ResizeMethod.RESIZE_METHOD_NEAREST, new, mode, nearestMode=told)
    check_image("RESIZE", image, [], wanted, **named)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("old", "new"), SIZES)
@pytest.mark.parametrize("coefficient", [-0.5, -0.75, 0.0])
def test_cubic_resize(
    old: tuple[int, ...], new: tuple[int, ...], mode: str, coefficient: float
) -> None:
    image = drawn(2, *old, 3)
    usual = -0.5 if mode == "HALF_PIXEL" else -0.75  # what 0, which says nothing, means
    wanted = oracles.resize(image, new, oracles.cubic(coefficient or usual), mode)
    named = resized(ResizeMethod.RESIZE_METHOD_CUBIC, new, mode, cubicCoeff=coefficient)
    check_image("RESIZE", image, [], wanted, tolerance=1e-4, **named)


@pytest.mark.parametrize("format", [NHWC, NCHW], ids=lambda one: one.name)
def test_blocks(format: Any) -> None:
    lay = turned if format is NCHW else np.asarray
    x = drawn(1, 3, 4, 2)
    padded = np.pad(x, [(0, 0), (1, 0), (0, 2), (0, 0)])
    apart = padded.reshape(1, 2, 2, 3, 2, 2).transpose(2, 4, 0, 1, 3, 5).reshape(4, 2, 3, 2)
    named = {"blockShape": [2, 2], "order": format}
    check("SPACE_TO_BATCH_ND", [lay(x)], lay(apart), paddings=[[1, 0], [0, 2]], **named)
    check("BATCH_TO_SPACE_ND", [lay(apart)], lay(x), crops=[[1, 0], [0, 2]], **named)


def test_a_quantized_convolution() -> None:
    generator = np.random.default_rng(0)
    image = generator.integers(-100, 100, (1, 5, 5, 3)).astype(np.int8)
    weight = generator.integers(-100, 100, (4, 3, 3, 3)).astype(np.int8)
    bias = generator.integers(-900, 900, 4).astype(I32)
    per_channel = [0.01, 0.02, 0.015, 0.005]
    steps = np.array(per_channel)
    parts = (image * 0.05, weight * steps[:, None, None, None], bias * steps * 0.05)
    reals = oracles.conv2d(*parts, (1, 1), (1, 1), (0, 0, 0, 0), 1)
    wanted = np.clip(np.round(reals / 0.5), -128, 127).astype(np.int8)
    scales = {
        0: [QuantParam(8, 0, 0.05)],
        1: [QuantParam(8, 0, step) for step in per_channel],
        3: [QuantParam(8, 0, 0.5)],
    }
    inputs: Inputs = [image, weight, bias]
    outputs = [(np.int8, wanted.shape)]
    (made,) = computed("CONV2D_FUSION", inputs, outputs, constants={1, 2}, scales=scales)
    assert np.abs(made.astype(int) - wanted).max() <= 1  # the float32 sum may be on either side
