"""Scales and biases along axes, sums and squared differences, against PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import of_torch, torch

from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import BiasAdd, Scale, SquaredDifference, Sum

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4, 5), (3, 0, 3)], ids=str)
def test_bias(check: Checker, shape: tuple[int, ...]) -> None:
    for axis in range(-len(shape), len(shape)):

        def like(x: Any, bias: Any, axis: int = axis) -> Any:
            return (x.movedim(axis, -1) + bias).movedim(-1, axis)

        check(
            lambda b, x, bias, axis=axis: b.add(BiasAdd, x, bias, axis),
            of_torch(like),
            *(shape, (shape[axis],)),
        )
    check(lambda b, *xs: b.add(BiasAdd, *xs), of_torch(torch.add), shape, (shape[-1],))


def test_bias_of_integers(check: Checker) -> None:
    like = of_torch(lambda x, bias: x + bias[:, None])
    integers = np.array([[2**31 - 1, 0], [-(2**31), 1]], np.int32)
    check(lambda b, *xs: b.add(BiasAdd, *xs, 0), like, integers, np.array([1, -1], np.int32))


@pytest.mark.parametrize(
    ("axis", "letters"), [(0, "ab"), (1, "bc"), (2, "cd"), (-2, "cd"), (-1, "d"), (1, "bcd")]
)
def test_scale(check: Checker, axis: int, letters: str) -> None:
    shape = (2, 3, 4, 5)
    along = tuple(shape["abcd".index(letter)] for letter in letters)

    def like(x: Any, scale: Any, bias: Any) -> Any:
        spread = torch.einsum(f"{letters},abcd->abcd", bias, torch.ones(shape))
        return torch.einsum(f"abcd,{letters}->abcd", x, scale) + spread

    check(lambda b, *xs: b.add(Scale, *xs, axis), of_torch(like), shape, along, along)
    check(
        lambda b, x, scale: b.add(Scale, x, scale, axis=axis),
        of_torch(lambda x, scale: torch.einsum(f"abcd,{letters}->abcd", x, scale)),
        *(shape, along),
    )


def test_scale_with_an_activation(check: Checker) -> None:
    like = of_torch(lambda x, scale, bias: torch.clamp(x * scale + bias, -1, 1))
    check(lambda b, *xs: b.add(Scale, *xs, axis=-1, fuse_code=Fuse.RELU1), like, (4, 6), (6,), (6,))


def test_sum(check: Checker) -> None:
    check(lambda b, x: b.add(Sum, [x]), of_torch(torch.clone), (2, 3))
    check(
        lambda b, *xs: b.add(Sum, list(xs)),
        of_torch(lambda x, y, z: x + y + z),
        *((2, 1, 4), (3, 1), ()),
    )
    integers = np.array([2**31 - 1, -(2**31)], np.int32)
    check(
        lambda b, x, y: b.add(Sum, [x, y, x]),
        of_torch(lambda x, y: x + y + x),
        *(integers, np.array([1, 2], np.int32)),
    )


def test_squared_difference(check: Checker) -> None:
    like = of_torch(lambda x, y: (x - y) ** 2)
    for x, y in (((2, 3), (3,)), ((2, 1, 4), (3, 1)), ((0, 3), (1, 1))):
        check(lambda b, x, y: b.add(SquaredDifference, x, y), like, x, y)
    integers = np.array([2**31 - 1, -(2**31), 5], np.int32)
    check(lambda b, x, y: b.add(SquaredDifference, x, y), like, integers, integers[::-1].copy())
