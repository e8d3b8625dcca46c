"""Joining, splitting, and grids, compared with PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.ops.oracle import of_torch, torch

from crosschip.ir import Builder
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

SHAPE = (2, 3, 4)


def test_stack_and_unstack(check: Checker) -> None:
    for axis in (0, 1, -1, 3, -4):
        check(
            lambda b, x, y, axis=axis: b.add(Stack, [x, y, x], axis=axis),
            of_torch(lambda x, y, axis=axis: torch.stack([x, y, x], axis)),
            *(SHAPE, SHAPE),
        )
    for axis, num in ((0, 2), (1, 3), (-1, 4)):
        check(
            lambda b, x, axis=axis, n=num: b.add_all(Unstack, x, axis, n),
            of_torch(lambda x, axis=axis: torch.unbind(x, axis)),
            SHAPE,
        )


def test_unstack_counts_for_itself() -> None:
    b = Builder()
    made = b.add_all(Unstack, b.constant(np.arange(6).reshape(2, 3)), 1)
    assert [operand.type.shape for operand in made] == [(2,)] * 3


def test_meshgrid(check: Checker) -> None:
    check(
        lambda b, x, y, z: b.add_all(Meshgrid, [x, y, z]),
        of_torch(lambda x, y, z: torch.meshgrid(x, y, z, indexing="ij")),
        *((2,), (3,), (1,)),
    )
    check(lambda b, x: b.add_all(Meshgrid, [x]), lambda x: x, (3,))


def test_concat_and_split(check: Checker) -> None:
    for axis in (0, 1, -1):
        check(
            lambda b, x, y, axis=axis: b.add(Concat, [x, y, x], axis=axis),
            lambda x, y, axis=axis: np.concatenate([x, y, x], axis),
            *(SHAPE, SHAPE),
        )
    check(
        lambda b, x: b.add_all(Split, x, -1, (1, 0, 3)),
        lambda x: torch.split(torch.from_numpy(x), [1, 0, 3], -1),
        SHAPE,
    )
