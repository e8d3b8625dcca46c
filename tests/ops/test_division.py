"""Division to whole numbers and remainders, against Python's own numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.ir import Array
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import FloorDiv, Mod

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def pairs_of(dtype: str) -> tuple[Array, Array]:
    """Every two of some integers, the extremes and 0 among them."""
    limits = np.iinfo(dtype)
    some = [limits.min, limits.max, 0, 1, 3, 7, limits.max - 1, limits.min // 2, limits.min // 3]
    if limits.min < 0:
        some += [-1, -3, -7]
    left, right = np.meshgrid(np.array(some, dtype), np.array(some, dtype))
    return left.copy(), right.copy()


def of_pairs(function: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    """A function of two of Python's numbers as one of arrays; integers wrap around."""

    def like(x: Array, y: Array) -> Array:
        results = [function(a, c) for a, c in zip(x.flat, y.flat, strict=True)]
        if x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            results = [(n - limits.min) % 2**limits.bits + limits.min for n in results]
        return np.array(results, x.dtype).reshape(x.shape)

    return like


def rest_of_integers(a: Any, c: Any) -> int:
    """The remainder with the sign of the dividend."""
    a, c = int(a), int(c)
    return int(math.copysign(1, a)) * (abs(a) % abs(c)) if c else 0


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(check: Checker, dtype: str) -> None:
    pairs = pairs_of(dtype)
    floor = of_pairs(lambda a, c: int(a) // int(c) if c else 0)
    check(lambda b, x, y: b.add(FloorDiv, x, y), floor, *pairs)
    modulo = of_pairs(lambda a, c: int(a) % int(c) if c else 0)
    check(lambda b, x, y: b.add(Mod, x, y), modulo, *pairs)
    check(lambda b, x, y: b.add(Mod, x, y, True), of_pairs(rest_of_integers), *pairs)


def grid() -> tuple[Array, Array]:
    """Every two of some reals."""
    some = np.array([-7.5, -3, -0.1, 0.1, 1, 2.5, 1e10, -1e-10])
    left, right = np.meshgrid(some, some)
    return left.copy(), right.copy()


def test_reals(check: Checker) -> None:
    pairs = grid()
    floor = of_pairs(lambda a, c: float(math.floor(a / c)))
    check(lambda b, x, y: b.add(FloorDiv, x, y), floor, *pairs, tolerance=0)
    check(lambda b, x, y: b.add(Mod, x, y), of_pairs(lambda a, c: a % c), *pairs, tolerance=0)
    check(lambda b, x, y: b.add(Mod, x, y, True), of_pairs(math.fmod), *pairs, tolerance=0)


def test_what_is_no_number(check: Checker) -> None:
    dividend = np.array([1, -1, 0, np.inf, np.nan, 2, -2, 2], np.float32)
    divisor = np.array([0, 0, 0, 3, 3, np.inf, np.inf, -np.inf], np.float32)
    nan, inf = np.nan, np.inf
    for build, expected in (
        (lambda b, x, y: b.add(FloorDiv, x, y), [inf, -inf, nan, inf, nan, 0, -0.0, -0.0]),
        (lambda b, x, y: b.add(Mod, x, y), [nan, nan, nan, nan, nan, 2, inf, -inf]),
        (lambda b, x, y: b.add(Mod, x, y, True), [nan, nan, nan, nan, nan, 2, -2, 2]),
    ):
        check(build, lambda x, y, e=expected: np.array(e, np.float32), dividend, divisor)


def test_a_fused_activation(check: Checker) -> None:
    floors = of_pairs(lambda a, c: min(max(a // c, 0), 6))
    check(lambda b, x, y: b.add(FloorDiv, x, y, Fuse.RELU6), floors, *grid())
