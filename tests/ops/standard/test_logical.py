"""Boolean and bitwise operators and selection, compared with PyTorch and Python integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from tests.ops.oracle import of_torch, torch

from crosschip.ir import Array
from crosschip.ops import Operator
from crosschip.ops.standard.logical import (
    And,
    BitShift,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Not,
    Or,
    ShiftDirection,
    Where,
    Xor,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

Function = Callable[..., Any]

LOGICAL: dict[type[Operator], Function] = {
    And: torch.logical_and,
    Or: torch.logical_or,
    Xor: torch.logical_xor,
}
BITWISE: dict[type[Operator], Callable[[int, int], int]] = {
    BitwiseAnd: operator.and_,
    BitwiseOr: operator.or_,
    BitwiseXor: operator.xor,
}
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def operator_name(operator: type[Operator]) -> str:
    return operator.type


def integers_of(dtype: str, seed: int) -> Array:
    """Return integers of all magnitudes, the smallest and the largest first."""
    limits, random = np.iinfo(dtype), np.random.default_rng(seed)
    found = random.integers(limits.min, limits.max, 40, dtype, endpoint=True)
    found[:2] = [limits.min, limits.max]
    return found


@pytest.mark.parametrize("operator", LOGICAL, ids=operator_name)
def test_logical(check: Checker, operator: type[Operator]) -> None:
    truth = np.array([False, True])
    like = of_torch(LOGICAL[operator])
    for x, y in ((truth, truth[:, None]), (truth[0], truth), (truth[:0], truth[:1])):
        check(lambda b, x, y: b.add(operator, x, y), like, np.array(x), y)


def test_not(check: Checker) -> None:
    for truth in (np.array([[False, True]]), np.array(True), np.zeros((0, 2), bool)):
        check(lambda b, x: b.add(Not, x), of_torch(torch.logical_not), truth)


def test_where(check: Checker) -> None:
    def build(b: Any, c: Any, x: Any, y: Any) -> Any:
        return b.add(Where, c, x, y)

    condition = np.array([[True], [False], [True]])
    check(build, of_torch(torch.where), condition, (2, 1, 4), (3, 4))
    check(build, of_torch(torch.where), np.array(True), (), (3, 4))
    check(build, of_torch(torch.where), condition[:0], (1, 2), (2,))
    nan = np.full(3, np.nan, np.float32)
    check(build, of_torch(torch.where), condition, nan, np.arange(3, dtype=np.float32))
    for dtype in (np.bool_, np.int8, np.uint64, np.float64, ml_dtypes.bfloat16, ml_dtypes.int4):
        x, y = np.array([1, 0, 1]).astype(dtype), np.array([0, 1, 1]).astype(dtype)
        expected = np.array([1, 1, 1]).astype(dtype)
        check(build, lambda c, x, y, e=expected: e, condition.ravel(), x, y)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operator", BITWISE, ids=operator_name)
def test_bitwise(check: Checker, operator: type[Operator], dtype: str) -> None:
    def like(x: Array, y: Array) -> Array:
        function = BITWISE[operator]
        pairs = zip(x.ravel().tolist(), y.tolist(), strict=True)
        return np.array([[function(a, c) for a, c in pairs]], dtype)

    x, y = integers_of(dtype, 1)[None], integers_of(dtype, 2)
    check(lambda b, x, y: b.add(operator, x, y), like, x, y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_that_are_not_set(check: Checker, dtype: str) -> None:
    limits = np.iinfo(dtype)

    def like(x: Array) -> Array:
        return np.array([limits.max + limits.min - n for n in x.tolist()], dtype)

    check(lambda b, x: b.add(BitwiseNot, x), like, integers_of(dtype, 3))


@pytest.mark.parametrize("direction", ShiftDirection, ids=lambda d: d.name)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(check: Checker, dtype: str, direction: ShiftDirection) -> None:
    limits = np.iinfo(dtype)
    places = np.arange(40).astype(dtype) % (limits.bits + 3)
    places[::7] = -1 if limits.min < 0 else limits.max

    def shifted(n: int, by: int) -> int:
        by = limits.bits if by < 0 else min(by, limits.bits)
        if direction is ShiftDirection.RIGHT:
            return n >> by
        return int(((n << by) - limits.min) % 2**limits.bits + limits.min)

    def like(x: Array, y: Array) -> Array:
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        return np.array([shifted(n, by) for n, by in pairs], dtype)

    check(lambda b, x, y: b.add(BitShift, x, y, direction), like, integers_of(dtype, 4), places)
