"""When two answers are the same."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from corpus.judging import difference, flat, tolerance
from hypothesis import given
from hypothesis import strategies as st

F32 = np.float32


def apart(computed: Any, expected: Any) -> float:
    (found,) = difference(flat(computed), flat(expected))
    return found


@pytest.mark.parametrize(
    ("computed", "expected", "found"),
    [
        (np.array([1, 9.5], F32), np.array([1, 10], F32), 0.05),
        (np.array([1e-9], F32), np.array([0], F32), 1e-9),
        (np.array([math.nan, 1], F32), np.array([math.nan, 1], F32), 0),
        (np.array([math.nan, 1], F32), np.array([2, 1], F32), math.inf),
        (np.array([math.inf, 1], F32), np.array([-math.inf, 1], F32), math.inf),
        (np.array([[1]], F32), np.array([1], F32), math.inf),
        (np.zeros(0, F32), np.zeros(0, F32), 0),
        (np.array([255, 0], np.uint8), np.array([254, 0], np.uint8), 1),
        (np.array([-128], np.int8), np.array([127], np.int8), 255),
        (np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5]), 0.25),
        (np.array([True]), np.array([True]), 0),
        (np.array(["a", "b"], object), np.array(["a", "c"], object), 0.5),
    ],
)
def test_how_far_answers_lie_apart(computed: Any, expected: Any, found: float) -> None:
    assert apart(computed, expected) == pytest.approx(found, rel=1e-6)


def test_what_is_no_tensor_is_taken_apart() -> None:
    sure = [{"no": 0.25, "yes": 0.75}, {"no": 0.5, "yes": 0.5}]
    unsure = [{"no": 0.3, "yes": 0.75}, {"no": 0.5, "yes": 0.5}]
    assert difference(flat(sure), flat(sure)) == [0, 0]
    keys, values = difference(flat(unsure), flat(sure))
    assert (keys, round(values, 6)) == (0, round(0.05 / 0.75, 6))
    assert difference(flat([np.ones(2)]), flat([np.ones(2), np.ones(3)])) == [math.inf, math.inf]


@pytest.mark.parametrize(
    ("dtype", "quantized", "spread", "allowed"),
    [
        (np.float32, False, 0.0, 1e-3),
        (np.float32, True, 1e-5, 1e-3),
        (np.float32, True, 0.01, 0.02),
        (np.float32, True, math.inf, 1e-3),
        (np.float16, False, 0.0, 4 * 2.0**-10),
        (ml_dtypes.bfloat16, False, 0.0, 4 * 2.0**-7),
        (np.uint8, True, 0.0, 1),
        (np.uint8, False, 0.0, 0),
        (np.int64, True, 0.0, 0),
        (np.int64, True, 0.1, 0.2),
    ],
)
def test_how_far_they_may(dtype: Any, quantized: bool, spread: float, allowed: float) -> None:
    array = np.zeros(3, dtype)
    assert tolerance(array, quantized=quantized, spread=spread) == pytest.approx(allowed)


def test_precision_within_and_at_the_end() -> None:
    array = np.array([-0.5, 0.25, np.inf], np.float32)
    halves = tolerance(array, quantized=False, spread=0.0, reals="float16")
    assert halves == pytest.approx(4 * 2.0**-10)
    dequantized = tolerance(array, quantized=True, spread=0.0, step=0.01)
    assert dequantized == pytest.approx(0.02, rel=1e-4)
    assert dequantized >= 0.02


@given(
    scale=st.floats(2**-14, 2**10, width=32),
    zero_point=st.integers(0, 255),
    bytes_=st.lists(st.integers(0, 254), min_size=1, max_size=8),
)
def test_a_step_of_a_quantized_output_is_allowed_and_two_are_not(
    scale: float, zero_point: int, bytes_: list[int]
) -> None:
    stored, step = np.array(bytes_), F32(scale)
    expected = (stored - zero_point).astype(F32) * step
    allowed = tolerance(expected, quantized=True, spread=0.0, step=float(step))
    one_more = (stored + 1 - zero_point).astype(F32) * step
    assert apart(one_more, expected) <= allowed
    two_more = (stored + 2 - zero_point).astype(F32) * step
    least = tolerance(expected, quantized=True, spread=0.0)
    assert apart(two_more, expected) > allowed or apart(two_more, expected) <= least
