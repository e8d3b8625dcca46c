"""Pooling over grids, against PyTorch, and of other ranks against NumPy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import functional, torch

from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import YES, Offer
from crosschip.ir import Array, Builder, ElementType, Model, TensorType
from crosschip.lowering.decomposition import decompose
from crosschip.ops import Operator
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


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


def over_cells(
    x: Array, size: Sequence[int], function: Callable[[Array], Array], fill: float
) -> Array:
    """A function of each cell, whose elements are side by side; those of others are `fill`."""
    result = np.empty((*x.shape[:2], *size))
    for place in itertools.product(*map(range, size)):
        mask = np.zeros(x.shape[2:], bool)
        cell = [
            slice(math.floor(i * n / count), math.ceil((i + 1) * n / count))
            for i, n, count in zip(place, x.shape[2:], size, strict=True)
        ]
        mask[tuple(cell)] = True
        flat = np.where(mask, x, fill).reshape(*x.shape[:2], -1)
        index: tuple[slice | int, ...] = (slice(None), slice(None), *place)
        result[index] = function(flat)
    return result


SIZES = [(1, 1, 1), (2, 3, 2), (3, 4, 5), (6, 2, 9)]
IMAGES = {1: (7,), 3: (4, 5, 7)}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("rank", IMAGES)
def test_other_ranks(check: Checker, rank: int, size: tuple[int, ...]) -> None:
    mean = {1: AdaptiveAveragePool1D, 3: AdaptiveAveragePool3D}[rank]
    greatest: Any = {1: AdaptiveMaxPool1D, 3: AdaptiveMaxPool3D}[rank]
    check(
        lambda b, x: b.add(mean, x, size[:rank]),
        lambda x: over_cells(x, size[:rank], lambda c: np.nanmean(c, -1), np.nan).astype(x.dtype),
        (2, 3, *IMAGES[rank]),
    )
    check(
        lambda b, x: b.add_all(
            greatest,
            x,
            size[:rank],
            return_indices=True,
            return_indices_dtype=ElementType.INT64,
        ),
        lambda x: [
            over_cells(x, size[:rank], lambda c: c.max(-1), -np.inf).astype(x.dtype),
            over_cells(x, size[:rank], lambda c: c.argmax(-1), -np.inf).astype(np.int64),
        ],
        (2, 3, *IMAGES[rank]),
    )


@pytest.mark.parametrize("operator", [AdaptiveMaxPool3D, AdaptiveAveragePool3D])
@pytest.mark.parametrize("size", [(0, 2, 2), (2, 0, 2), (2, 2, 0)], ids=str)
def test_grids_of_volumes_without_cells_decompose(
    operator: type[Operator], size: tuple[int, int, int]
) -> None:
    b = Builder("empty")
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3, 4, 5, 6)))
    b.output("y", b.add(operator, x, size))
    model = b.build()
    operation: Any = model.operations[0]
    parts = decompose(operation, lambda model: Offer([YES] * len(model.operations)), set())
    assert parts
    decomposed = Model("parts", model.inputs, parts, model.outputs)
    (result,) = ReferenceProgram(decomposed).run([np.zeros((2, 3, 4, 5, 6), np.float32)])
    assert result.shape == (2, 3, *size)
