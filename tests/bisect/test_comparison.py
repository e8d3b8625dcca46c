"""Comparing results: what rounding explains, and what it does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from crosschip.accuracy.error import relative_error
from crosschip.bisect.comparison import Difference, difference
from crosschip.hal import Precision
from crosschip.ir import Array, ElementType, Quantization, TensorType


def compared(actual: Any, wanted: Any, *moved: Any, **more: Any) -> Difference:
    """The difference of arrays of a type that they tell."""
    quantization = more.pop("quantization", None)
    type_ = TensorType(ElementType.of(wanted.dtype), wanted.shape, quantization)
    return difference(actual, wanted, type_, lambda: moved or [wanted], **more)


def reals(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_a_few_roundings_are_no_error() -> None:
    wanted = reals(2, 8, 5, 5)
    found = compared(wanted * np.float32(1 + 4e-7), wanted)
    assert not found.is_wrong
    assert 1e-7 < found.error < 1e-6


def test_one_channel_that_is_off_is_told() -> None:
    wanted = reals(2, 8, 5, 5)
    actual = wanted.copy()
    actual[:, 3] += 1e-3
    found = compared(actual, wanted)
    assert found.is_wrong
    assert found.error == pytest.approx(relative_error(actual, wanted))
    assert found.largest == pytest.approx(1e-3, rel=1e-3)
    assert found.explained < 1e-4
    assert found.detail.startswith("50 of 400 elements are wrong, most the one at [")
    assert found.detail.endswith("; all of them are at 3 of axis 1")


def test_what_moves_by_rounding_may_be_off_by_as_much() -> None:
    wanted = reals(100)
    off = wanted + np.float32(1e-4)
    assert compared(off, wanted).is_wrong
    assert not compared(off, wanted, wanted - np.float32(5e-5)).is_wrong


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_wrong_unless_it_should_be_none(bad: float) -> None:
    wanted = reals(10)
    actual = wanted.copy()
    actual[4] = bad
    found = compared(actual, wanted)
    assert found.is_wrong
    assert math.isinf(found.error)
    assert not compared(actual, actual.copy()).is_wrong


def test_a_mask_hides_nothing() -> None:
    """Attention scores where some are masked by a number far below all others."""
    wanted = reals(4, 8)
    wanted[:, 5:] = np.finfo(np.float32).min
    actual = wanted.copy()
    actual[1, 2] += 1e-3
    assert compared(actual, wanted).is_wrong
    actual = wanted.copy()
    actual[1, 6] *= np.float32(0.999)
    assert compared(actual, wanted).is_wrong
    actual[1, 6] = wanted[1, 6] * np.float32(1 - 1e-7)
    assert not compared(actual, wanted).is_wrong


def test_integers_are_exact_and_quantized_ones_within_a_step() -> None:
    wanted = np.arange(10, dtype=np.int8)
    assert compared(wanted + np.int8(1), wanted).is_wrong
    steps = Quantization((0.1,))
    assert not compared(wanted + np.int8(1), wanted, quantization=steps).is_wrong
    assert compared(wanted + np.int8(2), wanted, quantization=steps).is_wrong


def test_truth_values() -> None:
    wanted = np.array([True, False])
    assert not compared(wanted.copy(), wanted).is_wrong
    assert compared(~wanted, wanted).is_wrong


@pytest.mark.parametrize(
    ("precision", "wrong"), [(Precision.FLOAT32, True), (Precision.BFLOAT16, False)]
)
def test_the_arithmetic_decides_what_rounding_is(precision: Precision, wrong: bool) -> None:
    wanted = reals(100)
    actual = wanted.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert compared(actual, wanted, precision=precision).is_wrong is wrong


def test_a_small_result_of_large_numbers_is_as_exact_as_these() -> None:
    """Sigmoids of -18, which engines compute by way of numbers near 1."""
    wanted = np.full(4, 1.27e-8, np.float32)
    actual = np.zeros(4, np.float32)
    assert compared(actual, wanted).is_wrong
    found = compared(actual, wanted, rounding=4.8e-7)
    assert (found.is_wrong, found.error) == (False, 0.0)


@pytest.mark.parametrize(("tolerance", "wrong"), [(1e-2, False), (1e-4, True)])
def test_a_tolerance_of_the_callers_holds(tolerance: float, wrong: bool) -> None:
    wanted = np.ones(4, np.float32)
    found = compared(wanted + np.float32(1e-3), wanted, tolerance=tolerance)
    assert found.is_wrong is wrong
    assert found.explained == pytest.approx(tolerance)


def test_another_shape_or_type_is_wrong() -> None:
    wanted = reals(2, 3)
    found = compared(reals(3, 2), wanted)
    assert found.detail == "is float32[3, 2] instead of float32[2, 3]"
    assert compared(wanted.astype(np.float64), wanted).is_wrong


def test_nothing_is_equal_to_nothing() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert compared(empty, empty.copy()) == Difference(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("actual", "wanted", "wrong"),
    [
        ([np.ones(2), np.zeros(1)], [np.ones(2), np.zeros(1)], False),
        ([np.ones(2), np.zeros(1)], [np.ones(2), np.ones(1)], True),
        ({"a": 1.0}, {"a": 1.0}, False),
        (None, {"a": 1.0}, True),
    ],
)
def test_what_is_no_tensor(actual: Sequence[Any], wanted: Sequence[Any], wrong: bool) -> None:
    type_ = TensorType(ElementType.OBJECT, None)
    assert difference(actual, wanted, type_, list).is_wrong is wrong
