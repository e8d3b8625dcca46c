"""Slices and boxes, compared with Python and PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosschip.ops.standard.slicing import Crop, Slice, StridedSlice

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


SHAPE = (2, 3, 4)


# The checker only counts how often it is asked.
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(0, 6),
    start=st.integers(-9, 9),
    end=st.integers(-9, 9),
    step=st.integers(-3, 3),
)
def test_slices_are_those_of_python(
    check: Checker, size: int, start: int, end: int, step: int
) -> None:
    if step:
        check(
            lambda b, x: b.add(Slice, x, (1,), (start,), (end,), (step,)),
            lambda x: x[:, start:end:step],
            (2, size),
        )


def test_slices_to_the_very_ends(check: Checker) -> None:
    far = 2**31 - 1
    for start, end, step, slices in (
        (1, far, 1, slice(1, None)),
        (-far, far, 2, slice(None, None, 2)),
        (far, -far, -1, slice(None, None, -1)),
    ):
        check(
            lambda b, x, s=start, e=end, p=step: b.add(Slice, x, (1,), (s,), (e,), (p,)),
            lambda x, slices=slices: x[:, slices],
            (2, 5),
        )
    check(lambda b, x: b.add(Slice, x, starts=(1, 0), ends=(2, 3)), lambda x: x[1:2, 0:3], SHAPE)


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
