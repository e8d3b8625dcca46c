"""Operators that move elements about, on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosschip.ir import Array, ElementType
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.slicing import Slice

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

SHAPES = [np.int32, np.int64]


def numbers(*values: int, dtype: type[np.integer] = np.int64) -> Array:
    return np.array(values, dtype)


def test_reshape(check: Checker) -> None:
    for shape in ((4, 6), (-1,), (0, -1), (2, 0, 4), (1, 24, 1), (0, 0, 2, -1)):
        check(lambda b, x, shape=shape: b.add(Reshape, x, shape), (2, 3, 4))
    check(lambda b, x: b.add(Reshape, x, ()), (1, 1))
    check(lambda b, x: b.add(Reshape, x, (3, 0)), (0, 0), symbolic_too=False, rankless_too=False)


@pytest.mark.parametrize("dtype", SHAPES)
def test_computed_shapes(check: Checker, dtype: type[np.integer]) -> None:
    """Parameters that are inputs of the model."""

    def computed(operator: Any, shape: tuple[int, ...], *values: int) -> None:
        # the rank of the output follows from the length of the list
        wanted = numbers(*values, dtype=dtype)
        build = lambda b, x, s: b.add(operator, x, s)  # noqa: E731
        check(build, shape, wanted, symbolic_too=False, rankless_too=False)

    computed(Reshape, (2, 3, 4), 4, -1)
    computed(Reshape, (2, 3, 4), 0, 12)
    computed(Reshape, (2, 3, 4), -1)
    computed(Expand, (2, 1, 4), 2, 3, 4)
    computed(Expand, (2, 1, 4), 1, 3, -1)
    computed(Expand, (3, 1), 2, 1, 5)
    check(
        lambda b, s: b.add(Fill, s, np.array([2.5], np.float32)),
        numbers(2, 3, dtype=dtype),
        symbolic_too=False,
        rankless_too=False,
    )


def test_shapes_computed_from_shapes(check: Checker) -> None:
    def like(b: Any, x: Any, y: Any) -> Any:
        sizes = b.add(ShapeOf, y, ElementType.INT64)
        head = b.add(Slice, sizes, (0,), (0,), (1,))
        return b.add(Reshape, x, b.add(Concat, [head, b.constant(numbers(-1))], axis=0))

    check(like, (6, 4), (3, 5), rankless_too=False)


def test_transpose(check: Checker) -> None:
    for perm in ((0, 1, 2), (2, 0, 1), (0, 2, 1), (-1, -2, -3), (1, -3, 2)):
        check(lambda b, x, perm=perm: b.add(Transpose, x, perm), (2, 3, 4))
    check(lambda b, x: b.add(Transpose, x, (0, 2, 3, 1)), (2, 3, 4, 5))


def test_squeeze_and_unsqueeze(check: Checker) -> None:
    for axes in ((0,), (-1,), (0, 2), (-1, -3)):
        check(lambda b, x, axes=axes: b.add(Squeeze, x, axes), (1, 3, 1))
        check(lambda b, x, axes=axes: b.add(Unsqueeze, x, axes), (2, 3))
    check(lambda b, x: b.add(Squeeze, x), (1, 3, 1), symbolic_too=False)


def test_flatten(check: Checker) -> None:
    for start, end in ((0, -1), (1, -1), (1, 2), (0, 1), (-2, -2), (0, 0), (3, 3)):
        check(
            lambda b, x, start=start, end=end: b.add(Flatten, x, start, end),
            (2, 3, 4, 5),
            rankless_too=False,
        )
    check(lambda b, x: b.add(Flatten, x), (), rankless_too=False)
    check(lambda b, x: b.add(Flatten, x, 0), (7,), rankless_too=False)


def test_expand(check: Checker) -> None:
    for shape in ((2, 3, 4), (5, 2, 3, 4), (-1, 3, -1), (1, 1), ()):
        check(lambda b, x, shape=shape: b.add(Expand, x, shape), (2, 1, 4), rankless_too=False)


def test_shape(check: Checker) -> None:
    for dtype in (ElementType.INT32, ElementType.INT64):
        check(lambda b, x, dtype=dtype: b.add(ShapeOf, x, dtype), (2, 3, 4))
        check(lambda b, x, dtype=dtype: b.add(ShapeOf, x, dtype), ())


def test_fill(check: Checker) -> None:
    for value in (np.float32(0.5), np.array([[3]], np.int32), np.bool_(True)):
        check(lambda b, x, v=value: (b.add(Fill, (2, 3), v), b.add(ShapeOf, x)), (2,))
    check(lambda b, x: b.add(Fill, (4, 1), x), (1,))
    check(lambda b, x: b.add(Fill, (), x), (1, 1), symbolic_too=False, rankless_too=False)


def test_concat(check: Checker) -> None:
    for axis in (0, 1, -1):
        check(lambda b, x, y, axis=axis: b.add(Concat, [x, y], axis=axis), (2, 3, 4), (2, 3, 4))
    check(lambda b, x, y, z: b.add(Concat, [x, y, z], axis=1), (2, 1), (2, 3), (2, 2))
    check(lambda b, x: b.add(Concat, [x, x], axis=0), (2, 3))
    check(lambda b, x: b.add(Concat, [x], axis=0), (2, 3))
    check(lambda b, x: b.add(Concat, [x, b.constant(np.ones((1, 3), np.float32))], axis=0), (2, 3))


def test_split(check: Checker) -> None:
    check(lambda b, x: b.add_all(Split, x, 1, (1, 2)), (2, 3, 4))
    check(lambda b, x: b.add_all(Split, x, -1, (1, 1, 2)), (2, 3, 4))
    check(lambda b, x: b.add_all(Split, x, 0, (2,)), (2, 3))
    check(lambda b, x: b.add_all(Split, x, 0, (0, 2)), (2, 3))
    check(lambda b, x: b.add_all(Split, x, 1, (1, 2))[1], (2, 3, 4))


def test_gather(check: Checker) -> None:
    for axis in (0, 1, -1):
        for indices in (numbers(1, 0, -1), np.array([[0, 1], [1, -2]]), np.array(1, np.int32)):
            check(
                lambda b, x, i=indices, axis=axis: b.add(Gather, x, b.constant(i), axis),
                (2, 3, 4),
            )
    check(lambda b, x, i: b.add(Gather, x, i, 1), (2, 3), np.array([[2, 0], [-1, 1]]))


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


def test_going_backwards_from_an_unknown_place_is_declined(check: Checker) -> None:
    def backwards(b: Any, x: Any, start: int = -1) -> Any:
        return b.add(Slice, x, (0,), (start,), (-9,), (-1,))

    check(backwards, (4,), symbolic_too=False, rankless_too=False)
    check.declines(backwards, (4,), typing=check.symbolic, why="SLICE.starts")
    check.declines(lambda b, x: backwards(b, x, -5), (4,), why="SLICE.starts")


@pytest.mark.parametrize("dtype", SHAPES)
def test_computed_slices(check: Checker, dtype: type[np.integer]) -> None:
    for start, end in ((0, 2), (-3, -1), (1, 100), (2, 1)):
        check(
            lambda b, x, s, e: b.add(Slice, x, (1,), s, e),
            *((3, 4, 5), numbers(start, dtype=dtype), numbers(end, dtype=dtype)),
            rankless_too=False,
        )


def test_cast(check: Checker) -> None:
    reals = np.array([-2.9, -0.4, 0.0, 0.4, 1.0, 2.9, 100.7], np.float32)
    check(lambda b, x: b.add(Cast, x, ElementType.INT32), reals)
    check(lambda b, x: b.add(Cast, x, ElementType.INT8), reals)
    check(lambda b, x: b.add(Cast, x, ElementType.BOOL), reals)
    check(lambda b, x: b.add(Cast, x, ElementType.FLOAT16), reals)
    check(lambda b, x: b.add(Cast, x, ElementType.FLOAT32), np.array([True, False]))
    check(lambda b, x: b.add(Cast, x, ElementType.FLOAT32), numbers(-7, 0, 2**24))
    check(lambda b, x: b.add(Cast, x, ElementType.INT32), numbers(-7, 0, 2**31 - 1))


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    data=st.data(),
)
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
