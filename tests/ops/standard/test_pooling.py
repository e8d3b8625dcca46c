"""Pooling, against PyTorch, and of other ranks against NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from tests.ops.oracle import functional, torch

from crosschip.ir import ElementType
from crosschip.ops.standard.pooling import (
    AveragePool,
    AveragePool1D,
    AveragePool2D,
    AveragePool3D,
    MaxPool,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


def padded(image: Any, pads: tuple[int, ...], value: float = 0.0) -> Any:
    top, bottom, left, right = pads
    return functional.pad(image, (left, right, top, bottom), value=value)


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


IMAGES = {1: (9,), 3: (5, 6, 7)}
OTHERS: list[dict[str, Any]] = [
    {"kernel_shape": (2, 3, 2)},
    {"kernel_shape": (3, 2, 3), "strides": (2, 1, 3), "pads": (1, 2, 0, 1, 2, 0)},
    {"kernel_shape": (2, 2, 3), "strides": (2, 3, 2), "dilations": (3, 2, 1)},
]


def windows_of(x: Any, fill: float, settings: dict[str, Any]) -> Any:
    """The elements of each window, side by side on the last axis."""
    rank, kernel = x.ndim - 2, settings["kernel_shape"]
    strides = settings.get("strides", (1,) * rank)
    dilations = settings.get("dilations", (1,) * rank)
    pads = np.reshape((0, 0, 0, 0, *settings.get("pads", (0,) * 2 * rank)), (-1, 2))
    padded = np.pad(x, pads, constant_values=fill)
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    windows = sliding_window_view(padded, spans, tuple(range(2, 2 + rank)))
    places = tuple(slice(None, None, stride) for stride in strides)
    elements = tuple(slice(None, None, dilation) for dilation in dilations)
    windows = windows[(slice(None), slice(None), *places, *elements)]
    return windows.reshape(*windows.shape[: 2 + rank], -1)


def of_rank(settings: dict[str, Any], rank: int) -> dict[str, Any]:
    return {k: v[: 2 * rank if k == "pads" else rank] for k, v in settings.items()}


@pytest.mark.parametrize("settings", OTHERS, ids=str)
@pytest.mark.parametrize("operator", [AveragePool1D, AveragePool3D])
def test_means_of_other_ranks(
    check: Checker, operator: type[AveragePool], settings: dict[str, Any]
) -> None:
    given = of_rank(settings, operator.spatial_rank)
    for counts in (False, True):
        check(
            lambda b, x, c=counts: b.add(operator, x, count_include_pad=c, **given),
            lambda x, c=counts: np.nanmean(windows_of(x, 0.0 if c else np.nan, given), -1),
            (2, 3, *IMAGES[operator.spatial_rank]),
        )


@pytest.mark.parametrize("settings", OTHERS, ids=str)
@pytest.mark.parametrize("operator", [MaxPool1D, MaxPool3D])
def test_maxima_of_other_ranks(
    check: Checker, operator: type[MaxPool], settings: dict[str, Any]
) -> None:
    given = of_rank(settings, operator.spatial_rank)

    def maxima(x: Any) -> Any:
        windows = windows_of(x, -np.inf, given)
        offsets = np.arange(np.prod(x.shape[2:])).reshape(1, 1, *x.shape[2:])
        first = windows.argmax(-1)[..., None]
        places = np.broadcast_to(windows_of(offsets, -1, given), windows.shape)
        return [windows.max(-1), np.take_along_axis(places, first, -1)[..., 0]]

    check(
        lambda b, x: b.add_all(
            operator,
            x,
            return_indices=True,
            return_indices_dtype=ElementType.INT64,
            **given,
        ),
        maxima,
        (2, 3, *IMAGES[operator.spatial_rank]),
    )
