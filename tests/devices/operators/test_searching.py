"""Searches for extremes, largest, non-zero and unique elements on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    Example,
    adds,
    agree,
    assert_refused,
    claimed,
    claimed_example,
    integers,
    number,
    ones,
    values,
    zeros,
)
from tests.limits import is_declined_for_limit

from crosschip.hal import Options
from crosschip.ir import Array, Builder, DeviceError, ElementType
from crosschip.ir.types import FLOATS
from crosschip.ops import operator_named
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, SearchSorted, TopK, Unique

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

SHAPE, VECTOR, MATRIX = (2, 3, 4), (7,), (3, 4)
CLAIMS: dict[str, Example] = {
    "ARG_MAX": (lambda b, x: b.add(ArgMax, x, -1), (SHAPE,)),
    "ARG_MAX removed": (lambda b, x: b.add(ArgMax, x, 1, False, ElementType.INT32), (SHAPE,)),
    "ARG_MAX last": (lambda b, x: b.add(ArgMax, x, 0, select_last=True), (SHAPE,)),
    "ARG_MIN": (lambda b, x: b.add(ArgMin, x, -2, False), (SHAPE,)),
    "TOP_K": (lambda b, x: b.add_all(TopK, x, 2), (SHAPE,)),
    "TOP_K least": (
        lambda b, x: b.add_all(TopK, x, 2, 0, False, return_indices_dtype=ElementType.INT32),
        (SHAPE,),
    ),
    "TOP_K list": (lambda b, x: b.add_all(TopK, x, 5), (VECTOR,)),
    "NON_ZERO": (lambda b, x: b.add(NonZero, x), (MATRIX,)),
    "UNIQUE": (lambda b, x: b.add_all(Unique, x), ((9,),)),
    "UNIQUE of rows": (lambda b, x: b.add_all(Unique, x, 0), (MATRIX,)),
    "UNIQUE unsorted": (lambda b, x: b.add_all(Unique, x, 1, False), (MATRIX,)),
}
DECOMPOSED: dict[str, set[str]] = {
    "onnxruntime": set(),
    "openvino": {"UNIQUE of rows", "UNIQUE unsorted"},
}
"""The examples that engines leave to others."""


def tops(count: Any, largest: bool) -> Build:
    """Return the largest or smallest elements of the last axis with their indices."""
    return lambda b, *xs: b.add_all(operator_named("TOP_K"), *xs, *count, -1, largest=largest)


def adds_all(name: str, *parameters: Any) -> Build:
    """Add an operation and return all of its outputs."""
    return lambda b, *xs: b.add_all(operator_named(name), *xs, *parameters)


def with_ties(element_type: ElementType, shape: tuple[int, ...], device: str) -> Array:
    """Return random elements; floats are whole numbers."""
    found = values(element_type, shape)
    if element_type in FLOATS:
        return np.round(found)
    is_size = device == "openvino" and element_type is ElementType.INT64
    return found % 30 if is_size else found


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    build, (shape,) = CLAIMS[name]
    claims = claimed_example(check, CLAIMS[name])
    claims &= claimed(check, build, lambda each: [with_ties(each, shape, check.device.name)])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


@pytest.mark.parametrize("keepdim", [True, False])
def test_sizes_known_only_at_run_time(check: Checker, keepdim: bool) -> None:
    check(lambda b, x: b.add(ArgMax, x, 1, keepdim), (2, 3, 4))
    check(lambda b, x: b.add_all(TopK, x, 2, 1), (2, 3, 4))


def test_a_count_known_only_at_run_time(check: Checker) -> None:
    check(lambda b, x, k: b.add_all(TopK, x, k), (3, 5), np.array([2]), rankless_too=False)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_counts_that_are_computed(check: Checker, count: int) -> None:
    rows = np.array([[1, 3, 2], [5, 4, 6]], np.float32)
    agree(check, tops((), True), [rows, integers(count)], check.static)
    agree(check, tops((), True), [rows, integers(count)], check.symbolic)
    for wrong in (-1, 4):
        assert_refused(check, tops((), True), [rows, integers(wrong)], check.static)


def test_counts_after_one_that_does_not_fit(check: Checker) -> None:
    three, one = np.array([1, 3, 2], np.float32), np.array([1], np.float32)
    model = check.built(tops((2,), True), [three], check.symbolic)
    if is_declined_for_limit(check.device.supports(model.operations[0], Options())):
        return
    program = check.device.compile(model, Options())
    for _ in range(2):
        np.testing.assert_array_equal(program.run([three])[0], [3, 2])
        with pytest.raises(DeviceError, match=check.device.name):
            program.run([one])


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_none_of_the_greatest(check: Checker) -> None:
    check.declines(lambda b, x: b.add_all(TopK, x, 0, -1), (3,), why="k: is 0")


def test_the_greatest_of_nothing(check: Checker) -> None:
    def build(b: Builder, x: Any, k: Any) -> Any:
        return b.add_all(operator_named("TOP_K"), x, k)[0]

    agree(check, build, [np.zeros(0, np.float32), np.zeros((), np.int32)], check.static)


def test_of_nothing(check: Checker) -> None:
    build = adds("ARG_MAX", 0)
    agree(check, build, [zeros(2, 0)], check.static)
    agree(check, build, [zeros(2, 0)], check.symbolic)
    agree(check, build, [ones(3, 2)], check.symbolic)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("sign", [1, -1])
def test_infinities_are_beyond_the_largest_number(check: Checker, dtype: Any, sign: int) -> None:
    largest = np.finfo(dtype).max
    row = sign * np.array([1, largest, np.inf, -largest, -np.inf, largest, np.inf], dtype)
    for largest_first in (True, False):
        agree(check, tops((5,), largest_first), [row], check.static)
    for name in ("ARG_MAX", "ARG_MIN"):
        agree(check, adds(name, 0), [row], check.static)
        agree(check, adds(name, 0, keepdim=False), [row], check.symbolic)


_ODD = (0.0, -0.0, 1.0, -1.0, 2.0, 3e38, -3e38, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("seed", range(6))
def test_nan_infinities_and_ties_together(check: Checker, seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, 12, random.integers(1, 4)))
    axis = int(random.integers(-len(shape), len(shape)))
    array = random.choice(np.array(_ODD, np.float32), shape)
    types = check.symbolic if seed % 2 and axis % len(shape) == 0 else check.static
    for largest in (True, False):
        for count in {1, shape[axis], min(shape[axis], 3)}:
            build = adds_all("TOP_K", count, axis, largest)
            agree(check, build, [array], types)
    for name in ("ARG_MAX", "ARG_MIN"):
        for last in (True, False):
            build = adds(name, axis, select_last=last)
            agree(check, build, [array], check.static)


@pytest.mark.parametrize("value", [0, 3])
def test_single_numbers(check: Checker, value: int) -> None:
    agree(check, adds("NON_ZERO"), [number(value)], check.static)


def test_entries_that_are_alike(check: Checker) -> None:
    columns = np.array([[0, 0, 0, 0], [0, 1, 0, 1]], np.float32)
    agree(check, adds("UNIQUE", axis=1), [columns], check.static)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize(
    ("sequence", "searched"), [((30,), (2, 5)), ((7,), ()), ((2, 30), (2, 5)), ((1, 30), (2, 5))]
)
def test_places_in_ascending_sequences(
    check: Checker, sequence: tuple[int, ...], searched: tuple[int, ...], right: bool
) -> None:
    def arrays_of(element_type: ElementType) -> list[Array]:
        ascending = np.sort(with_ties(element_type, sequence, check.device.name), -1)
        return [ascending, with_ties(element_type, searched, check.device.name)]

    def build(b: Builder, *xs: Any) -> Any:
        return b.add(SearchSorted, *xs, right, ElementType.INT32)

    claims = claimed(check, build, arrays_of)
    claimed(check, build, arrays_of, check.symbolic)
    is_converted = check.device.name == "openvino" and sequence != (1, 30)
    assert (ElementType.FLOAT32 in claims) == is_converted


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_places_that_comparisons_find_faster(check: Checker) -> None:
    check.declines(adds("SEARCH_SORTED"), (30,), (11,), why="is faster")
    check.declines(adds("SEARCH_SORTED"), (30,), (10,), typing=check.symbolic, why="must be known")
