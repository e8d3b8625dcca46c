"""Pooling, against PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import functional, torch

from crosschip.ir import ElementType
from crosschip.ops.standard.pooling import (
    AdaptiveAveragePool2D,
    AdaptiveMaxPool2D,
    AveragePool2D,
    MaxPool2D,
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
