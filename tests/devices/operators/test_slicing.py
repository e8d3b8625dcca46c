"""Slices and crops on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.devices.checks import Example, adds, agree, claimed_example, integers, number

from crosschip.ir import ElementType, ModelError
from crosschip.ops import operator_named
from crosschip.ops.standard.slicing import Crop, Slice, StridedSlice

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

MATRIX = (3, 4)
CLAIMS: dict[str, Example] = {
    "SLICE": (lambda b, x: b.add(Slice, x, (2, 3), (1, 4), (5, 0), (2, -1)), ((1, 2, 6, 5),)),
    "CROP": (lambda b, x: b.add(Crop, x, (2, 3), 2, (1, 2)), ((2, 8, 4, 6),)),
    "STRIDED_SLICE": (
        lambda b, x: b.add(StridedSlice, x, (1, 0), (0, 4), (1, 2), shrink_axis_mask=1),
        (MATRIX,),
    ),
}
DECOMPOSED = {"CROP", "STRIDED_SLICE"}
"""The examples that both engines leave to others."""


def test_slice(check: Checker) -> None:
    for places in (
        {"starts": (1,), "ends": (3,)},
        {"axes": (-1,), "starts": (-3,), "ends": (2**31 - 1,)},
        {"axes": (0, 2), "starts": (0, 1), "ends": (1, -1)},
        {"axes": (2,), "starts": (4,), "ends": (-(2**31),), "steps": (-1,)},
        {"axes": (2,), "starts": (100,), "ends": (0,), "steps": (-2,)},
        {"axes": (1, 2), "starts": (0, 0), "ends": (9, 9), "steps": (2, 3)},
        {"axes": (1,), "starts": (2,), "ends": (1,)},
        {"axes": (1,), "starts": np.array([0]), "ends": np.array([2**63 - 1])},
    ):
        check(lambda b, x, places=places: b.add(Slice, x, **places), (3, 4, 5))


@settings(max_examples=40, deadline=None)
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple), data=st.data())
def test_any_slice(check: Checker, shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    size = len(axes)
    starts = tuple(data.draw(st.integers(-shape[axis], 7)) for axis in axes)
    ends = tuple(data.draw(st.lists(st.integers(-7, 7), min_size=size, max_size=size)))
    steps = tuple(
        data.draw(st.lists(st.sampled_from([-2, -1, 1, 3]), min_size=size, max_size=size))
    )
    check(
        lambda b, x: b.add(Slice, x, tuple(axes), starts, ends, steps),
        shape,
        symbolic_too=False,
        rankless_too=False,
    )


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    claims = claimed_example(check, CLAIMS[name])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_computed_slices(check: Checker, dtype: type[np.integer]) -> None:
    for start, end in ((0, 2), (-3, -1), (1, 100), (2, 1)):
        check(
            lambda b, x, s, e: b.add(Slice, x, (1,), s, e),
            *((3, 4, 5), integers(start, dtype=dtype), integers(end, dtype=dtype)),
            rankless_too=False,
        )


def test_going_backwards_from_an_unknown_place_is_declined(check: Checker) -> None:
    def backwards(b: Any, x: Any, start: int = -1) -> Any:
        return b.add(Slice, x, (0,), (start,), (-9,), (-1,))

    for size in (4, 1, 0):
        check(backwards, (size,), rankless_too=False)
    check.declines(lambda b, x: backwards(b, x, -2), (4,), typing=check.symbolic, why="SLICE.start")
    check.declines(lambda b, x: backwards(b, x, -5), (4,), why="SLICE.starts")


def test_steps_backwards_from_the_far_end(check: Checker) -> None:
    build = adds("SLICE", starts=[0], ends=[2**31 - 1], steps=[-1])
    agree(check, build, [np.array([3, 4], np.float32)], check.static)


@pytest.mark.parametrize("value", [0, 3])
def test_single_numbers(check: Checker, value: int) -> None:
    agree(check, adds("SLICE", starts=[], ends=[]), [number(value)], check.static)


def test_slices_are_counted(check: Checker) -> None:
    def build(b: Any, x: Any, end: Any) -> Any:
        return b.add(operator_named("SLICE"), x, axes=[], starts=[], ends=end, steps=[0])

    with pytest.raises(ModelError, match="equally many"):
        check.built(build, [number(3), integers(0)], check.static)
