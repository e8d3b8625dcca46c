"""Slices, boxes, padding, repeating, shifting, reversing and triangles, against others."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ops.oracle import functional, of_onnx, of_torch, torch

from crosschip.ir import Array
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu
from crosschip.ops.standard.slicing import Crop, StridedSlice

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

ALL = slice(None)

SLICES = [
    (((1, 0), (3, 4), (1, 2)), {}, np.s_[1:3, 0:4:2]),
    (((1, 0), (3, 4), (1, 2)), {"begin_mask": 1, "end_mask": 2}, np.s_[:3, 0::2]),
    (((-1, 3), (-9, 0), (-1, -2)), {}, np.s_[-1:-9:-1, 3:0:-2]),
    (((0, 0), (0, 0), (-1, -1)), {"begin_mask": 3, "end_mask": 3}, np.s_[::-1, ::-1]),
    (((2,), (0,), (1,)), {"shrink_axis_mask": 1}, np.s_[2]),
    (((-1, 1), (0, 9), (1, 1)), {"shrink_axis_mask": 1}, np.s_[-1, 1:9]),
    (
        ((0, 0, 1), (0, 0, 3), (1, 1, 1)),
        {"ellipsis_mask": 1, "new_axis_mask": 2},
        np.s_[..., None, 1:3],
    ),
    (((0, 1, 0), (9, 1, 9), (1, 1, 1)), {"ellipsis_mask": 2}, np.s_[0:9, ..., 0:9]),
    (
        ((1, 0, 2), (2, 0, 0), (1, 1, 1)),
        {"ellipsis_mask": 2, "shrink_axis_mask": 4},
        np.s_[1:2, ..., 2],
    ),
    (((0, 1), (0, 1), (1, 1)), {"new_axis_mask": 1, "shrink_axis_mask": 3}, np.s_[None, 1]),
    (((), (), ()), {}, np.s_[...]),
    (((2,), (1,), (1,)), {}, np.s_[2:1]),
]


@pytest.mark.parametrize(("bounds", "masks", "places"), SLICES)
def test_strided_slice(check: Checker, bounds: Any, masks: dict[str, int], places: Any) -> None:
    check(lambda b, x: b.add(StridedSlice, x, *bounds, **masks), lambda x: x[places], (3, 4, 5))


def test_crop(check: Checker) -> None:
    for arguments, places in (
        (((2, 3), 2, (1, 2)), np.s_[:, :, 1:3, 2:5]),
        (((2, 3), -2, (1,)), np.s_[:, :, 1:3, 1:4]),
        (((9, 9, 2, 3), 2), np.s_[:, :, :2, :3]),
        (((1, 2, 4, 5), 0, (1, 0, 0, 0)), np.s_[1:2, 0:2]),
        (((0,), 3, (5,)), np.s_[..., 5:5]),
    ):
        check(lambda b, x, a=arguments: b.add(Crop, x, *a), lambda x, p=places: x[p], (2, 2, 4, 5))


def source(place: int, size: int, mode: PadMode) -> int:
    """Which element of an axis stands at a place before or after it; step by step."""
    if mode is PadMode.WRAP:
        return place % size
    while not 0 <= place < size:
        if mode in (PadMode.REPLICATE, PadMode.EDGE) or size == 1:
            return 0 if place < 0 else size - 1
        edge = 1 if mode is PadMode.SYMMETRIC else 0
        place = -place - edge if place < 0 else 2 * (size - 1) - place + edge
    return place


def padded(x: Array, pads: tuple[int, ...], mode: PadMode) -> Array:
    """Axis by axis, element by element."""
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


# The checker only counts how often it is asked.
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bounds=st.tuples(*(st.integers(-7, 7),) * 2, st.integers(-3, 3).filter(bool)),
    begin=st.booleans(),
    end=st.booleans(),
)
def test_strided_slices_are_those_of_python(
    check: Checker, bounds: tuple[int, int, int], begin: bool, end: bool
) -> None:
    first, last, step = bounds
    places = slice(None if begin else first, None if end else last, step)
    check(
        lambda b, x: b.add(
            StridedSlice, x, (first,), (last,), (step,), begin_mask=int(begin), end_mask=int(end)
        ),
        lambda x: x[places],
        (5, 2),
    )
