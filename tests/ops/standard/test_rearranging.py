"""Repetition, shifts, reversal and triangles, compared with other implementations."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.ops.oracle import of_onnx, of_torch, torch

from crosschip.ir import Array
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

ALL = slice(None)


def test_tile(check: Checker) -> None:
    for repeats in ((2, 3), (1, 1), (3,), (2, 1, 2), (0, 2), ()):
        check(
            lambda b, x, r=repeats: b.add(Tile, x, r),
            of_torch(lambda x, r=repeats: torch.tile(x, r)),
            (2, 3),
        )


def test_roll(check: Checker) -> None:
    for shifts, axes in (((2,), (0,)), ((-1, 9), (1, 0)), ((1, 1), (1, 1)), ((-4,), None)):
        check(
            lambda b, x, s=shifts, a=axes: b.add(Roll, x, s, a),
            of_torch(lambda x, s=shifts, a=axes: torch.roll(x, s, a)),
            (3, 4),
        )
    check(lambda b, x: b.add(Roll, x, (2,), (0,)), lambda x: x, (0, 2))


def test_reverse_sequence(check: Checker) -> None:
    lengths = np.array([3, 0, 1, 2])
    for time, batch in ((0, 1), (1, 0)):
        check(
            lambda b, x, n, t=time, a=batch: b.add(ReverseSequence, x, n, t, a),
            of_onnx("ReverseSequence", time_axis=time, batch_axis=batch),
            *((4, 4, 2), lengths),
        )

    def formula(x: Array, lengths: Array) -> Array:
        reversed_ = x.copy()
        for i, j, k in product(*map(range, x.shape)):
            if k < lengths[i]:
                reversed_[i, j, k] = x[i, j, lengths[i] - 1 - k]
        return reversed_

    check(
        lambda b, x, n: b.add(ReverseSequence, x, n, -1, 0),
        formula,
        *((4, 2, 3), lengths.astype(np.int32)),
    )


@pytest.mark.parametrize("k", [-9, -1, 0, 2, 9])
def test_triangles(check: Checker, k: int) -> None:
    for shape in ((3, 4), (2, 4, 3), (0, 3)):
        check(lambda b, x: b.add(Trilu, x, k), of_torch(lambda x: torch.triu(x, k)), shape)
        check(lambda b, x: b.add(Trilu, x, k, False), of_torch(lambda x: torch.tril(x, k)), shape)
