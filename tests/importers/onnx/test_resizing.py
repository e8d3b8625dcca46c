"""Resizing, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import helper, numpy_helper

import crosschip
from crosschip.ops.standard.resizing import ResizeLinear

X = np.random.default_rng(5).standard_normal((2, 3, 4, 6)).astype(np.float32)
WHOLE = [[1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.5, 1.5]]
SCALES = [*WHOLE, [1.0, 1.0, 1.25, 0.7]]
SIZES = [[2, 3, 8, 18], [2, 3, 3, 9], [2, 3, 1, 1]]
VERSIONS = [11, 13, 18, 19, 26]

Agree = Callable[..., None]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(agree: Agree, mode: str) -> None:
    agree("Upsample", X, opsets=[7, 8], mode=mode, scales=[1.0, 1.0, 2.0, 1.5])
    agree("Upsample", X, [1.0, 1.0, 2.0, 1.5], opsets=[9], mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_of_opset_10(agree: Agree, mode: str) -> None:
    agree("Resize", X, [1.0, 1.0, 2.0, 1.5], opsets=[10], mode=mode)
    if mode == "linear":
        agree("Resize", X, np.array([1, 1, 2, 1.5], np.float32), opsets=[10], mode=mode)


NEAREST = [("asymmetric", "floor"), ("align_corners", "round_prefer_ceil")]


@pytest.mark.parametrize(("coordinates", "rounding"), NEAREST)
def test_nearest(agree: Agree, coordinates: str, rounding: str) -> None:
    way = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    for scales in WHOLE if coordinates == "align_corners" else SCALES:
        agree("Resize", X, None, scales, opsets=[13, 19, 26], **way)
        agree("Resize", X, None, np.array(scales, np.float32), opsets=[13, 26], **way)
    for sizes in SIZES:
        agree("Resize", X, [], [], sizes, opsets=[11], **way)
        agree("Resize", X, None, None, sizes, opsets=[13, 19, 26], **way)
        computed = np.array(sizes)
        agree("Resize", X, [], [], computed, opsets=[11, 13, 26], constant_for_oracle=[3], **way)


REPEATING = [
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
    ("tf_half_pixel_for_nn", "floor"),
]


@pytest.mark.parametrize(("coordinates", "rounding"), REPEATING)
def test_nearest_that_repeats_pixels(agree: Agree, coordinates: str, rounding: str) -> None:
    way = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    versions = [11] if coordinates.startswith("tf") else [11, 13, 26]
    for factor in range(1, 9):
        agree("Resize", X, [], [1.0, 1.0, factor, 2.0], opsets=versions, **way)
        sizes = [2, 3, 4 * factor, 12]
        agree("Resize", X, [], [], sizes, opsets=versions, dynamic=False, **way)


@pytest.mark.parametrize(("size", "scale"), [(3, 5 / 3), (6, 5 / 3), (5, 7 / 5), (6, 1 / 3)])
def test_sizes_are_scaled_in_float32(agree: Agree, size: int, scale: float) -> None:
    way = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    agree("Resize", X[..., :size], None, [1.0, 1.0, 1.0, scale], opsets=[13, 26], **way)


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
def test_linear(agree: Agree, coordinates: str) -> None:
    way = {"coordinate_transformation_mode": coordinates, "mode": "linear"}
    # Where a new size is rounded, ONNX aligns the corners before that, and ONNX Runtime after.
    for scales in WHOLE if coordinates == "align_corners" else SCALES:
        agree("Resize", X, [], scales, opsets=VERSIONS, relative=1e-5, **way)
    for sizes in SIZES:
        agree("Resize", X, [], [], sizes, opsets=VERSIONS, relative=1e-5, **way)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_means_of_bytes(agree: Agree, dtype: type[np.integer]) -> None:
    """Fractions are dropped; the scales are such that means are exact."""
    limits = np.iinfo(dtype)
    image = np.random.default_rng(6).integers(limits.min, limits.max, (2, 3, 4, 6), endpoint=True)
    for coordinates in ("half_pixel", "asymmetric"):
        way = {"mode": "linear", "coordinate_transformation_mode": coordinates}
        agree("Resize", image.astype(dtype), None, [1.0, 1.0, 2.0, 4.0], opsets=VERSIONS[1:], **way)


def test_linear_in_the_way_of_pytorch(agree: Agree) -> None:
    way = {"coordinate_transformation_mode": "pytorch_half_pixel", "mode": "linear"}
    agree("Resize", X, [], SCALES[0], opsets=VERSIONS, relative=1e-5, **way)
    agree("Resize", X, [], SCALES[1], opsets=VERSIONS, relative=1e-5, dynamic=False, **way)
    agree("Resize", X, [], [], SIZES[1], opsets=VERSIONS, relative=1e-5, **way)


def test_resize_of_named_axes(agree: Agree) -> None:
    way = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    agree("Resize", X, None, [2.0, 1.5], opsets=[18, 26], axes=[2, 3], **way)
    agree("Resize", X, None, [1.5, 2.0], opsets=[18, 26], axes=[-1, 2], **way)
    agree("Resize", X, None, [2.0], opsets=[18, 26], axes=[3], **way)
    agree("Resize", X, [], [], np.array([8, 9]), opsets=[18, 26], axes=[2, 3],
          constant_for_oracle=[3], **way)  # fmt: skip


def test_corners_of_open_sizes_by_whole_scales() -> None:
    """No new size is rounded, so that engines agree about where its corners are."""
    made = [helper.make_tensor_value_info(n, 1, ["n", 3, f"{n}h", f"{n}w"]) for n in ("x", "y")]
    way = {"coordinate_transformation_mode": "align_corners", "mode": "linear"}
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **way)
    scales = numpy_helper.from_array(np.array([1, 1, 2, 3], np.float32), "scales")
    graph = helper.make_graph([node], "corners", made[:1], made[1:], [scales])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    (resized,) = crosschip.load(model).operations
    assert isinstance(resized, ResizeLinear)
    assert resized.align_corners
