"""Padding, compared with PyTorch and element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.ops.oracle import functional, of_torch

from crosschip.ir import Array
from crosschip.ops.standard.padding import Pad, PadMode

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


def source(place: int, size: int, mode: PadMode) -> int:
    """Return the element of an axis at an index outside the axis, found step by step."""
    if mode is PadMode.WRAP:
        return place % size
    while not 0 <= place < size:
        if mode in (PadMode.REPLICATE, PadMode.EDGE) or size == 1:
            return 0 if place < 0 else size - 1
        edge = 1 if mode is PadMode.SYMMETRIC else 0
        place = -place - edge if place < 0 else 2 * (size - 1) - place + edge
    return place


def padded(x: Array, pads: tuple[int, ...], mode: PadMode) -> Array:
    """Pad axis by axis, element by element."""
    for axis, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        x = np.take(x, range(max(0, -before), x.shape[axis] - max(0, -after)), axis)
        size = x.shape[axis]
        places = range(-max(0, before), size + max(0, after))
        x = np.take(x, [source(place, size, mode) for place in places], axis)
    return x


MIRRORS = [mode for mode in PadMode if mode not in (PadMode.NONE, PadMode.CONSTANT)]


@pytest.mark.parametrize("mode", MIRRORS, ids=lambda mode: mode.name)
def test_padding_with_the_input(check: Checker, mode: PadMode) -> None:
    for pads in ((0, 0, 1, 2), (2, 1, 3, 0), (7, 9, 5, 11), (-1, 2, 0, -2)):
        for shape in ((3, 4), (4, 3)):
            check(
                lambda b, x, p=pads: b.add(Pad, x, p, mode),
                lambda x, p=pads: padded(x, p, mode),
                shape,
            )
    check(lambda b, x: b.add(Pad, x, (2, 3), mode), lambda x: np.repeat(x, 6), (1,))


def test_padding_as_pytorch(check: Checker) -> None:
    """PyTorch's pads begin with the last axis."""
    shape = (2, 3, 4, 5)
    for mode, name in (
        (PadMode.REFLECT, "reflect"),
        (PadMode.REPLICATE, "replicate"),
        (PadMode.WRAP, "circular"),
    ):
        check(
            lambda b, x, mode=mode: b.add(Pad, x, (0, 0, 0, 0, 1, 3, 2, 0), mode),
            of_torch(lambda x, name=name: functional.pad(x, (2, 0, 1, 3), name)),
            shape,
        )
    for mode in (PadMode.NONE, PadMode.CONSTANT):
        check(
            lambda b, x, mode=mode: b.add(Pad, x, (1, -1, 0, 2, 1, 3, 2, -4), mode, np.float32(7)),
            of_torch(lambda x: functional.pad(x, (2, -4, 1, 3, 0, 2, 1, -1), value=7.0)),
            shape,
        )
    check(
        lambda b, x: b.add(Pad, x, (0, 1)),
        of_torch(lambda x: functional.pad(x, (0, 1))),
        np.array([True, True]),
    )
