"""Convolution, pooling and resampling, against PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import functional, torch

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.pooling import (
    AdaptiveAveragePool2D,
    AdaptiveMaxPool2D,
    AveragePool2D,
    MaxPool2D,
)
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.sampling import GridSample

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

# `pads` of the operators are top, bottom, left, right; PyTorch's are left, right, top, bottom.
PADS = [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 2, 0), (2, 0, 1, 3)]


def padded(image: Any, pads: tuple[int, ...], value: float = 0.0) -> Any:
    top, bottom, left, right = pads
    return functional.pad(image, (left, right, top, bottom), value=value)


@pytest.mark.parametrize("pads", PADS, ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("dilations", [(1, 1), (2, 1)], ids=str)
@pytest.mark.parametrize("group", [1, 2, 4])
def test_convolution(
    check: Checker,
    pads: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    group: int,
) -> None:
    def like(x: Array, filters: Array, bias: Array | None = None) -> Any:
        return functional.conv2d(
            padded(torch.from_numpy(x), pads),
            torch.from_numpy(filters),
            None if bias is None else torch.from_numpy(bias),
            strides,
            dilation=dilations,
            groups=group,
        )

    def conv(b: Any, *operands: Any) -> Any:
        return b.add(
            Conv2D, *operands, pads=pads, strides=strides, dilations=dilations, group=group
        )

    filters = np.random.default_rng(2).normal(size=(8, 4 // group, 3, 2)).astype(np.float32)
    check(
        lambda b, x: conv(b, x, filters, np.arange(8, dtype=np.float32)),
        lambda x: like(x, filters, np.arange(8, dtype=np.float32)),
        (2, 4, 8, 9),
    )
    check(
        lambda b, x: conv(b, x, filters),
        lambda x: like(x, filters),
        (2, 4, 8, 9),
    )


# For an image of 8 by 9: `ceil(8 / stride_h)` and `ceil(9 / stride_w)` windows, an odd rest last.
SAME = [
    ((3, 3), (1, 1), (1, 1, 1, 1)),
    ((2, 4), (1, 1), (0, 1, 1, 2)),
    ((3, 3), (2, 2), (0, 1, 1, 1)),
    ((5, 2), (3, 3), (1, 2, 0, 0)),
    ((1, 1), (2, 2), (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("kernel", "strides", "pads"), SAME, ids=str)
def test_same_padding(
    check: Checker, kernel: tuple[int, int], strides: tuple[int, int], pads: tuple[int, ...]
) -> None:
    filters = np.random.default_rng(3).normal(size=(5, 4, *kernel)).astype(np.float32)
    given: dict[str, Any] = {"auto_pad": AutoPad.SAME, "strides": strides}
    check(
        lambda b, x: b.add(Conv2D, x, filters, **given),
        lambda x: functional.conv2d(
            padded(torch.from_numpy(x), pads), torch.from_numpy(filters), None, strides
        ),
        (2, 4, 8, 9),
    )
    check(
        lambda b, x: b.add(MaxPool2D, x, kernel_shape=kernel, **given),
        lambda x: functional.max_pool2d(
            padded(torch.from_numpy(x), pads, -np.inf), kernel, strides
        ),
        (2, 4, 8, 9),
    )
    check(
        lambda b, x: b.add(AveragePool2D, x, kernel_shape=kernel, count_include_pad=True, **given),
        lambda x: functional.avg_pool2d(padded(torch.from_numpy(x), pads), kernel, strides),
        (2, 4, 8, 9),
    )


def test_valid_padding_ignores_pads(check: Checker) -> None:
    filters = np.ones((3, 4, 3, 3), np.float32)
    check(
        lambda b, x: b.add(Conv2D, x, filters, auto_pad=AutoPad.VALID, pads=(1, 1, 1, 1)),
        lambda x: functional.conv2d(torch.from_numpy(x), torch.from_numpy(filters)),
        (2, 4, 8, 9),
    )


@pytest.mark.parametrize("pads", PADS, ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("dilations", [(1, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("group", [1, 2, 4])
def test_transposed_convolution(
    check: Checker,
    pads: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    group: int,
) -> None:
    filters = np.random.default_rng(4).normal(size=(4, 6 // group, 3, 4)).astype(np.float32)
    if group == 4:
        filters = filters[:, :1]
    top, bottom, left, right = pads

    def like(x: Array) -> Any:
        whole = functional.conv_transpose2d(
            torch.from_numpy(x),
            torch.from_numpy(filters.copy()),
            None,
            strides,
            groups=group,
            dilation=dilations,
        )
        return whole[:, :, top : whole.shape[2] - bottom, left : whole.shape[3] - right]

    check(
        lambda b, x: b.add(
            Conv2DTranspose,
            x,
            filters.copy(),
            pads=pads,
            strides=strides,
            group=group,
            dilations=dilations,
        ),
        like,
        (2, 4, 5, 6),
    )


def test_transposed_convolution_with_output_padding(check: Checker) -> None:
    filters = np.random.default_rng(5).normal(size=(4, 6, 3, 3)).astype(np.float32)
    bias = np.arange(6, dtype=np.float32)
    for sizes in ({"output_padding": (1, 0)}, {"output_shape": (10, 11)}):
        check(
            lambda b, x, sizes=sizes: b.add(
                Conv2DTranspose, x, filters, bias, pads=(1, 1, 1, 1), strides=(2, 2), **sizes
            ),
            lambda x: functional.conv_transpose2d(
                torch.from_numpy(x),
                torch.from_numpy(filters),
                torch.from_numpy(bias),
                (2, 2),
                (1, 1),
                (1, 0),
            ),
            (2, 4, 5, 6),
        )


POOLS: list[dict[str, Any]] = [
    {"kernel_size": (2, 3)},
    {"kernel_size": (3, 3), "stride": (2, 2)},
    {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 1)},
    {"kernel_size": (3, 3), "stride": (2, 2), "ceil_mode": True},
    {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 0), "ceil_mode": True},
]


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_pooling(check: Checker, pool: dict[str, Any]) -> None:
    pool = {"stride": (1, 1), "padding": (0, 0), "ceil_mode": False, **pool}
    (height, width), ceil_mode = pool["padding"], pool["ceil_mode"]
    given = {
        "kernel_shape": pool["kernel_size"],
        "strides": pool["stride"],
        "pads": (height, height, width, width),
        "ceil_mode": ceil_mode,
    }
    for count in (False, True):
        check(
            lambda b, x, c=count: b.add(AveragePool2D, x, count_include_pad=c, **given),
            lambda x, c=count: functional.avg_pool2d(
                torch.from_numpy(x), count_include_pad=c, **pool
            ),
            (2, 3, 8, 10),
        )
    check(
        lambda b, x: b.add_all(
            MaxPool2D,
            x,
            return_indices=True,
            return_indices_dtype=ElementType.INT64,
            **given,
        ),
        lambda x: functional.max_pool2d_with_indices(torch.from_numpy(x), **pool),
        (2, 3, 8, 10),
    )


DILATED: list[dict[str, Any]] = [
    {"kernel_size": (2, 3), "stride": (1, 2), "dilation": (2, 3)},
    {"kernel_size": (3, 2), "stride": (2, 2), "dilation": (1, 4), "padding": (1, 1)},
    {"kernel_size": (2, 2), "stride": (3, 2), "dilation": (3, 1), "ceil_mode": True},
]


@pytest.mark.parametrize("pool", DILATED, ids=str)
def test_dilated_pooling(check: Checker, pool: dict[str, Any]) -> None:
    height, width = pool.get("padding", (0, 0))
    given = {
        "kernel_shape": pool["kernel_size"],
        "strides": pool["stride"],
        "dilations": pool["dilation"],
        "pads": (height, height, width, width),
        "ceil_mode": pool.get("ceil_mode", False),
        "return_indices": True,
        "return_indices_dtype": ElementType.INT64,
    }
    check(
        lambda b, x: b.add_all(MaxPool2D, x, **given),
        lambda x: functional.max_pool2d_with_indices(torch.from_numpy(x), **pool),
        (2, 3, 8, 10),
    )


@pytest.mark.parametrize("stride", [(3, 3), (4, 2)], ids=str)
def test_windows_that_would_start_in_padding(check: Checker, stride: tuple[int, int]) -> None:
    """PyTorch leaves them out, Paddle keeps them (see test_paddle_oracle)."""
    given = {
        "kernel_shape": (2, 2),
        "strides": stride,
        "pads": (1, 1, 1, 1),
        "ceil_mode": True,
        "inside": True,
    }
    pool: dict[str, Any] = {"stride": stride, "padding": (1, 1), "ceil_mode": True}
    check(
        lambda b, x: b.add(MaxPool2D, x, **given),
        lambda x: functional.max_pool2d(torch.from_numpy(x), (2, 2), **pool),
        (2, 3, 7, 6),
    )
    for count in (False, True):
        check(
            lambda b, x, c=count: b.add(AveragePool2D, x, count_include_pad=c, **given),
            lambda x, c=count: functional.avg_pool2d(
                torch.from_numpy(x), (2, 2), count_include_pad=c, **pool
            ),
            (2, 3, 7, 6),
        )


def test_pooling_of_what_is_not_a_number(check: Checker) -> None:
    x = np.random.default_rng(3).normal(size=(1, 1, 6, 6)).astype(np.float32)
    x[0, 0, 2:5] = -np.inf
    x[0, 0, 1, 1] = np.nan
    check(
        lambda b, x: b.add_all(
            MaxPool2D,
            x,
            kernel_shape=(2, 2),
            return_indices=True,
            return_indices_dtype=ElementType.INT64,
        ),
        lambda x: functional.max_pool2d_with_indices(torch.from_numpy(x), (2, 2), (1, 1)),
        x,
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_pooling_of_bytes(check: Checker, dtype: Any) -> None:
    x = np.random.default_rng(4).integers(0, 100, (1, 2, 5, 6)).astype(dtype) - dtype(0)
    if dtype is np.int8:
        x = (x - 100).astype(np.int8)
    check(
        lambda b, x: b.add(MaxPool2D, x, kernel_shape=(2, 3), pads=(1, 0, 1, 1), strides=(2, 2)),
        lambda x: (
            functional.max_pool2d(
                padded(torch.from_numpy(x.astype(np.float32)), (1, 0, 1, 1), -np.inf),
                (2, 3),
                (2, 2),
            )
            .numpy()
            .astype(dtype)
        ),
        x,
    )


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 7), (3, 2), (8, 9)], ids=str)
def test_adaptive_maximum(check: Checker, size: tuple[int, int]) -> None:
    check(
        lambda b, x: b.add_all(
            AdaptiveMaxPool2D,
            x,
            size,
            return_indices=True,
            return_indices_dtype=ElementType.INT64,
        ),
        lambda x: functional.adaptive_max_pool2d_with_indices(torch.from_numpy(x), size),
        (2, 3, 5, 7),
    )


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 7), (3, 2), (8, 9)], ids=str)
def test_adaptive_pooling(check: Checker, size: tuple[int, int]) -> None:
    check(
        lambda b, x: b.add(AdaptiveAveragePool2D, x, size),
        lambda x: functional.adaptive_avg_pool2d(torch.from_numpy(x), size),
        (2, 3, 5, 7),
    )


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
    """PyTorch lets no pixel beyond the border count, and takes Keys' own coefficient."""
    operator = {"bilinear": ResizeLinear, "bicubic": ResizeCubic}[mode]
    given = {"coefficient": -0.5} if operator is ResizeCubic else {}
    check(
        lambda b, x: b.add(operator, x, size, antialias=True, exclude_outside=True, **given),
        lambda x: functional.interpolate(torch.from_numpy(x), size, mode=mode, antialias=True),
        (2, 3, 5, 7),
    )


def interpolated(image: Array, places: Array, axis: int) -> Array:
    """The image at places between the pixels of an axis."""
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


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_sampling(check: Checker, mode: str, border: str, align_corners: bool) -> None:
    random = np.random.default_rng(6)
    grid = random.uniform(-3, 3, (2, 4, 5, 2)).astype(np.float32)
    grid[0, 0] = np.array([[-1, -1], [1, 1], [0, 0], [-1, 1], [0.2, 0.2]])
    borders = {
        "zeros": PadMode.CONSTANT,
        "border": PadMode.EDGE,
        "reflection": PadMode.REFLECT,
    }
    check(
        lambda b, x, grid: b.add(
            GridSample, x, grid, align_corners, Kernel[mode.upper()], borders[border]
        ),
        lambda x, grid: functional.grid_sample(
            *(torch.from_numpy(x), torch.from_numpy(grid), mode, border, align_corners)
        ),
        (2, 3, 5, 6),
        grid,
    )
