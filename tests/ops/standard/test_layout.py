"""Operators that change a tensor's shape or the order of its axes, against NumPy and PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.ops.oracle import torch

from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


SHAPE = (2, 3, 4)


def test_reshape(check: Checker) -> None:
    for asked, made in (
        ((4, 6), (4, 6)),
        ((-1,), (24,)),
        ((0, -1), (2, 12)),
        ((1, 0, 8), (1, 3, 8)),
    ):
        check(
            lambda b, x, asked=asked: b.add(Reshape, x, asked),
            lambda x, made=made: x.reshape(made),
            SHAPE,
        )


def test_transpose(check: Checker) -> None:
    for perm in ((0, 1, 2), (2, 0, 1), (-1, -2, -3)):
        check(
            lambda b, x, perm=perm: b.add(Transpose, x, perm),
            lambda x, perm=perm: torch.permute(torch.from_numpy(x), perm),
            SHAPE,
        )


def test_squeeze_and_unsqueeze(check: Checker) -> None:
    for axes in ((0,), (-1,), (0, 2), (-1, -3)):
        check(
            lambda b, x, axes=axes: b.add(Squeeze, x, axes),
            lambda x, axes=axes: torch.squeeze(torch.from_numpy(x), axes),
            (1, 3, 1),
        )
        check(
            lambda b, x, axes=axes: b.add(Unsqueeze, x, axes),
            lambda x, axes=axes: np.expand_dims(x, axes),
            (2, 3),
        )


def test_flatten(check: Checker) -> None:
    for start, end in ((0, -1), (1, -1), (0, 1), (-2, -2), (1, 2)):
        check(
            lambda b, x, s=start, e=end: b.add(Flatten, x, s, e),
            lambda x, s=start, e=end: torch.flatten(torch.from_numpy(x), s, e),
            SHAPE,
        )
    check(lambda b, x: b.add(Flatten, x), lambda x: x.reshape(1), ())


def test_expand(check: Checker) -> None:
    for shape, made in (
        ((2, 3, 4), (2, 3, 4)),
        ((5, 2, -1, 4), (5, 2, 1, 4)),
        ((1, 1), (2, 1, 4)),
        ((), (2, 1, 4)),
    ):
        check(
            lambda b, x, shape=shape: b.add(Expand, x, shape),
            lambda x, made=made: torch.from_numpy(x).expand(made),
            (2, 1, 4),
        )


def test_reshape_of_nothing(check: Checker) -> None:
    """A -1 is inferred from the input sizes that are not kept."""
    check(lambda b, x: b.add(Reshape, x, (0, -1)), lambda x: x.reshape(0, 12), (0, 3, 4))
    check(lambda b, x: b.add(Reshape, x, (-1, 2, 4)), lambda x: x.reshape(0, 2, 4), (0, 4))
