"""Estimates of blocks that were not measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.costs.estimate import NOMINAL, UNKNOWN_ERROR, Roofline
from crosschip.runtime.costs.workload import Workload

AMOUNTS = st.integers(0, 10**9)
WORK = st.builds(Workload, AMOUNTS, AMOUNTS, AMOUNTS, st.integers(1, 10**8), st.integers(1, 50))


@given(st.lists(WORK, min_size=12, max_size=20), st.floats(0.01, 100), WORK)
def test_estimates_of_a_linear_device_are_right(
    measured: list[Workload], factor: float, other: Workload
) -> None:
    """A device that is a multiple of the nominal one, so that few measurements determine it."""
    roofline = Roofline.fit(measured, [factor * NOMINAL.seconds(work) for work in measured])
    assert roofline.seconds(other) == pytest.approx(factor * NOMINAL.seconds(other), rel=1e-3)


def _random_work(generator: np.random.Generator) -> Workload:
    convolutions, grouped, products, nbytes = (10 ** generator.uniform(5, 8, 4)).astype(int)
    return Workload(convolutions, grouped, products, nbytes, 5)


def test_rates_follow_measurements() -> None:
    """A device with quick convolutions and slow memory."""
    generator = np.random.default_rng(0)
    rates = np.array([1e-12, 1e-10, 1e-11, 1e-9, 1e-6])
    work = [_random_work(generator) for _ in range(40)]
    seconds = np.array(work, np.float64) @ rates
    roofline = Roofline.fit(work[:30], seconds[:30].tolist())
    estimates = np.array([roofline.seconds(each) for each in work[30:]])
    np.testing.assert_allclose(estimates, seconds[30:], rtol=0.1)
    assert roofline.error == pytest.approx(0.3)


@given(st.lists(WORK, min_size=1, max_size=10), st.data())
def test_estimates_are_positive(measured: list[Workload], data: st.DataObject) -> None:
    seconds = [data.draw(st.floats(1e-6, 1.0)) for _ in measured]
    roofline = Roofline.fit(measured, seconds)
    assert 0 < roofline.error <= UNKNOWN_ERROR
    assert all(roofline.seconds(work) >= 0 for work in measured)


def test_a_device_without_measurements_has_the_speed_of_the_whole() -> None:
    work = Workload(convolutions=10**9, bytes=10**6, operations=10)
    roofline = Roofline.of_whole(work, 3.0)
    assert roofline.seconds(work) == pytest.approx(3.0)
    assert roofline.error == UNKNOWN_ERROR
