"""Blocks of images, compared with PyTorch, ONNX's evaluator, and elementwise formulas."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.ops.oracle import functional, of_onnx, of_torch

from crosschip.ir import Array
from crosschip.ops.standard.blocks import (
    BatchToSpaceND,
    ChannelShuffle,
    DepthOrder,
    DepthToSpace,
    SpaceToBatchND,
    SpaceToDepth,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


@pytest.mark.parametrize("group", [1, 2, 3, 6])
def test_channel_shuffle(check: Checker, group: int) -> None:
    def formula(x: Array) -> Array:
        shuffled, size = np.empty_like(x), x.shape[1] // group
        for g, k in product(range(group), range(size)):
            shuffled[:, k * group + g] = x[:, g * size + k]
        return shuffled

    check(lambda b, x: b.add(ChannelShuffle, x, group), formula, (2, 6, 3, 2))
    check(lambda b, x: b.add(ChannelShuffle, x, group), formula, (2, 6))
    shuffle = of_torch(lambda x: functional.channel_shuffle(x, group))
    check(lambda b, x: b.add(ChannelShuffle, x, group), shuffle, (2, 6, 3, 2))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_depth_and_space(check: Checker, size: int) -> None:
    deep, wide = (2, 2 * size**2, 2, 3), (2, 2, 2 * size, 3 * size)
    check(
        lambda b, x: b.add(DepthToSpace, x, size, DepthOrder.CRD),
        of_torch(lambda x: functional.pixel_shuffle(x, size)),
        deep,
    )
    for mode in DepthOrder:
        check(
            lambda b, x, mode=mode: b.add(DepthToSpace, x, size, mode),
            of_onnx("DepthToSpace", blocksize=size, mode=mode.name),
            deep,
        )
    check(
        lambda b, x: b.add(SpaceToDepth, x, size),
        of_onnx("SpaceToDepth", blocksize=size),
        wide,
    )
    check(
        lambda b, x: b.add(DepthToSpace, b.add(SpaceToDepth, x, size), size),
        lambda x: x,
        wide,
    )


CASES = [
    ((2, 1, 4, 6), (2, 3), (0, 0, 0, 0)),
    ((1, 2, 3, 5), (2, 2), (1, 0, 1, 2)),
    ((2, 1, 2, 2), (1, 3), (0, 1, 2, 2)),
    ((1, 1, 5), (3,), (1, 3)),
    ((1, 2, 2, 1, 3), (2, 1, 2), (0, 0, 1, 1, 0, 1)),
]


def blocks_of(padded: Array, block: tuple[int, ...]) -> Array:
    """Return the pixels at `offset` in each block of an image."""
    entries: list[Array] = []
    for offset in product(*map(range, block)):
        places = tuple(slice(start, None, step) for start, step in zip(offset, block, strict=True))
        entries.extend(image[(slice(None), *places)] for image in padded)
    return np.stack(entries)


@pytest.mark.parametrize(("shape", "block", "pads"), CASES)
def test_space_to_batch_and_back(
    check: Checker, shape: tuple[int, ...], block: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    def formula(x: Array) -> Array:
        sizes = zip(x.shape[2:], pads[::2], pads[1::2], strict=True)
        padded = np.zeros((*x.shape[:2], *(sum(size) for size in sizes)), x.dtype)
        box = [slice(n, n + size) for n, size in zip(pads[::2], x.shape[2:], strict=True)]
        padded[(slice(None), slice(None), *box)] = x
        return blocks_of(padded, block)

    check(lambda b, x: b.add(SpaceToBatchND, x, block, pads), formula, shape)
    check(
        lambda b, x: b.add(BatchToSpaceND, b.add(SpaceToBatchND, x, block, pads), block, pads),
        lambda x: x,
        shape,
    )


def test_the_batch_counts_blocks_before_images(check: Checker) -> None:
    """An example of TensorFlow's documentation, with the channel first."""
    corners = [[[1, 3], [9, 11]], [[2, 4], [10, 12]], [[5, 7], [13, 15]], [[6, 8], [14, 16]]]
    check(
        lambda b, x: b.add(BatchToSpaceND, x, (2, 2), (0, 0, 0, 0)),
        lambda x: np.arange(1, 17).reshape(1, 1, 4, 4),
        np.array(corners).reshape(4, 1, 2, 2),
    )
