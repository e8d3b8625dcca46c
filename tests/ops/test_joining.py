"""Stacking, grids, ranges, filling and assertions, against PyTorch, and by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ops.oracle import of_torch, torch

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Array, Builder, DeviceError, ElementType
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.creation import Fill, FillLike, Range, Rank
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Meshgrid, Stack, Unstack
from crosschip.ops.standard.layout import Reshape

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


def test_rank(check: Checker) -> None:
    for shape in (SHAPE, (), (0,)):
        check(lambda b, x: b.add(Rank, x), lambda x: np.array(x.ndim, np.int32), shape)


def test_fill(check: Checker) -> None:
    check(lambda b, x: b.add(Fill, (), x), of_torch(lambda x: torch.full((), float(x[0]))), (1,))
    check(lambda b, x: b.add(Fill, (0, 3), x), of_torch(lambda x: x.expand(0, 3)), ())
    check(
        lambda b, x: b.add(FillLike, x, np.float32(0.5)),
        of_torch(lambda x: torch.full_like(x, 0.5)),
        SHAPE,
    )
    check(
        lambda b, x: b.add(FillLike, x, np.array([7])),
        of_torch(lambda x: torch.full_like(x, 7, dtype=torch.int64)),
        (2, 0),
    )


def bounds(*values: float, dtype: type[np.generic]) -> list[Array]:
    return [np.array(value, dtype) for value in values]


# The checker only counts how often it is asked.
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(-9, 9), end=st.integers(-9, 9), step=st.integers(-4, 4).filter(bool))
def test_ranges_are_those_of_python(check: Checker, start: int, end: int, step: int) -> None:
    for dtype in (np.int64, np.int32, np.int8):
        check(
            lambda b, *parts: b.add(Range, *parts),
            lambda *parts, dtype=dtype: np.array(range(start, end, step), dtype),
            *bounds(start, end, step, dtype=dtype),
            counted=True,
        )


def test_ranges_of_reals(check: Checker) -> None:
    for start, end, step in ((0.0, 2.0, 0.3), (5.0, -1.0, -0.7), (0.5, 4.5, 1.0)):
        for dtype in (np.float32, np.float64):
            check(
                lambda b, *parts: b.add(Range, *parts),
                of_torch(
                    lambda *parts: torch.arange(*(p.item() for p in parts), dtype=parts[0].dtype)
                ),
                *bounds(start, end, step, dtype=dtype),
                counted=True,
            )


def test_a_range_that_runs_away_from_its_end_is_empty(check: Checker) -> None:
    check(
        lambda b, *parts: b.add(Range, *parts),
        lambda *parts: np.zeros(0, np.float32),
        *bounds(1, 0, 2, dtype=np.float32),
        counted=True,
    )


def test_a_range_of_constants_has_a_known_size() -> None:
    b = Builder()
    made = b.add(Range, np.float32(1), np.float32(2), np.float32(0.25))
    assert made.type.static_shape == (4,)
    numbers = b.add(Range, np.int64(2), np.int64(6), np.int64(2))
    assert b.add(Fill, numbers, np.float32(0)).type.shape == (2, 4)


@pytest.mark.parametrize("step", [0.0, np.nan, np.inf])
def test_a_range_that_never_ends(step: float) -> None:
    b = Builder()
    parts = [b.input(str(i), b.constant(np.float32(1)).type) for i in range(3)]
    b.output("y", b.add(Range, *parts))
    with pytest.raises(DeviceError, match=r"RANGE range_0: (step|start): "):
        ReferenceProgram(b.build()).run(bounds(0, 1, step, dtype=np.float32))


def test_gather_of_nothing(check: Checker) -> None:
    check(
        lambda b, x: b.add(Gather, x, np.zeros((2, 0), np.int64), 1),
        lambda x: np.zeros((2, 2, 0, 4), np.float32),
        SHAPE,
    )


def test_reshape_of_nothing(check: Checker) -> None:
    """A -1 is what the input's sizes that are not kept come to."""
    check(lambda b, x: b.add(Reshape, x, (0, -1)), lambda x: x.reshape(0, 12), (0, 3, 4))
    check(lambda b, x: b.add(Reshape, x, (-1, 2, 4)), lambda x: x.reshape(0, 2, 4), (0, 4))


def asserted(condition: Array, summarize: int = 3) -> list[Array]:
    b = Builder()
    data = [np.arange(5), np.array([[7, 8]])]
    x = b.input("x", b.constant(condition).type)
    made = b.add_all(Assert, x, [b.constant(array) for array in data], summarize)
    for index, operand in enumerate(made):
        b.output(str(index), operand)
    return list(ReferenceProgram(b.build()).run([condition]))


@pytest.mark.parametrize("condition", [True, [True, True], [[]]])
def test_what_holds_passes_the_data_on(condition: object) -> None:
    first, second = asserted(np.array(condition, np.bool_))
    np.testing.assert_array_equal(first, np.arange(5))
    np.testing.assert_array_equal(second, [[7, 8]])


@pytest.mark.parametrize(
    ("summarize", "shown"), [(3, r"\[0, 1, 2\]; \[7, 8\]"), (0, r"\[\]; \[\]"), (-1, r"4\]; ")]
)
def test_what_does_not_hold_stops_the_model(summarize: int, shown: str) -> None:
    with pytest.raises(DeviceError, match=rf"ASSERT assert_0: condition: does not hold.*{shown}"):
        asserted(np.array([True, False]), summarize)


def test_element_types_of_an_assertion() -> None:
    b = Builder()
    condition = b.constant(np.array(True))
    (made,) = b.add_all(Assert, condition, [b.constant(np.ones(2, np.int8))])
    assert made.type.element_type is ElementType.INT8
