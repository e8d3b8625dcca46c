"""The error of a result, against formulas."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from crosschip.accuracy.error import error_of, relative_error
from crosschip.ir import Array

TENSORS = arrays.arrays(
    np.float32,
    arrays.array_shapes(min_dims=0, max_side=4, min_side=0),
    elements=st.floats(-1000, 1000, width=32),
)


def off(made: object, exact: object) -> float:
    return error_of([{"y": np.asarray(made)}], [{"y": np.asarray(exact)}])


@given(TENSORS, st.floats(-0.5, 0.5))
def test_it_is_the_noise_in_units_of_the_signal(exact: Array, share: float) -> None:
    error = off(exact.astype(np.float64) * (1 + share), exact)
    assert error == pytest.approx(abs(share) if exact.any() else 0.0, rel=1e-6, abs=1e-12)


@given(TENSORS)
def test_what_is_the_same_has_none(exact: Array) -> None:
    assert off(exact.copy(), exact) == 0


def test_euclids_norm() -> None:
    assert off([3.0, 4.0], [0.0, 4.0]) == 3 / 4
    assert off([1.0, 0.0], [0.0, 0.0]) == math.inf


@pytest.mark.parametrize(
    ("made", "exact", "error"),
    [
        ([1, 2, 3, 5], [1, 2, 3, 4], 0.25),
        ([True, False], [True, True], 0.5),
        (np.array(["a", "b"], object), np.array(["a", "c"], object), 0.5),
        (np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0),
        ([1.0, np.nan], [1.0, np.nan], 0.0),
        ([1.0, np.inf], [1.0, np.inf], 0.0),
        ([1.0, -np.inf], [1.0, np.inf], math.inf),
        ([1.0, np.nan], [1.0, 2.0], math.inf),
        ([1.0, 2.0], [1.0, np.nan], math.inf),
        ([[1.0, 2.0]], [1.0, 2.0], math.inf),
        (np.array([1.5], ml_dtypes.bfloat16), np.array([1.0], ml_dtypes.bfloat16), 0.5),
    ],
)
def test_what_is_no_finite_real(made: object, exact: object, error: float) -> None:
    assert off(made, exact) == error


@given(TENSORS, st.floats(0, 1e-3))
def test_what_rounding_explains_is_no_error_and_what_is_beyond_counts_whole(
    exact: Array, rounding: float
) -> None:
    exact = exact.astype(np.float64)
    assert relative_error(exact + 0.7 * rounding, exact, rounding + 1e-12) == 0
    beyond = rounding + 1e-3
    assert relative_error(exact + beyond, exact, rounding) == relative_error(exact + beyond, exact)


@pytest.mark.parametrize(
    ("result", "exact", "error"),
    [
        ([np.ones(2), np.zeros(1)], [np.ones(2), np.zeros(1)], 0.0),
        ([np.ones(2), np.zeros(1)], [np.ones(2), np.ones(1)], math.inf),
        ({"a": 1.0}, {"a": 1.0}, 0.0),
        (None, {"a": 1.0}, math.inf),
        (np.float32(2), np.float32(1), 1.0),
    ],
)
def test_what_is_no_array(result: Any, exact: Any, error: float) -> None:
    assert relative_error(result, exact) == error


def test_the_worst_output_of_the_worst_sample_counts() -> None:
    exact = [{"a": np.ones(2), "b": np.ones(2)}] * 2
    made = [{"a": np.ones(2), "b": np.ones(2)}, {"a": np.ones(2) * 1.1, "b": np.ones(2) * 0.8}]
    assert error_of(made, exact) == pytest.approx(0.2)
